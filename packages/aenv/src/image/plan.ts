import { isAbsolute, join, resolve } from "node:path";
import type { EnvironmentConfig } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";

/** What the command line says about an image. */
export interface ImageOptions {
  readonly imageName?: string;
  readonly imageTag?: readonly string[];
  readonly registry?: string;
  readonly namespace?: string;
  readonly platform?: string;
  readonly dockerfile?: string;
  readonly buildArg?: Readonly<Record<string, string>>;
  readonly push?: boolean;
}

/** What the settings of the command say about the registry. */
export interface RegistrySettings {
  readonly host?: string | undefined;
  readonly namespace?: string | undefined;
  readonly username?: string | undefined;
  readonly password?: string | undefined;
}

/** What is built. */
export interface ImagePlan {
  /** One image name per tag, such as `ghcr.io/team/my-env:1.0.0`. */
  readonly references: readonly string[];
  /** Null if the registry is that of the builder. */
  readonly registry: string | null;
  /** Null: the project has none, and one is made for its bundle. */
  readonly dockerfile: string | null;
  readonly context: string;
  readonly platforms: readonly string[];
  readonly buildArgs: Readonly<Record<string, string>>;
  readonly isPushed: boolean;
}

/** Written into the name, because builders disagree about names without a registry. */
const DEFAULT_REGISTRY = "docker.io";
const NAME = /^[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*$/;
const TAG = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$/;
const HOST = /^[A-Za-z0-9.-]+(?::\d+)?$/;
const PLATFORM = /^[a-z0-9]+\/[a-z0-9_]+(?:\/[a-z0-9]+)?$/;

export interface PlanInput {
  readonly root: string;
  readonly config: EnvironmentConfig;
  readonly options: ImageOptions;
  readonly settings: RegistrySettings;
  readonly exists: (path: string) => boolean;
}

/** Command line before config.json before settings. Throws for names that no registry accepts. */
export function planImage({ root, config, options, settings, exists }: PlanInput): ImagePlan {
  const { buildConfig = {} } = config;
  const registry = options.registry ?? settings.host ?? DEFAULT_REGISTRY;
  const namespace = options.namespace ?? settings.namespace ?? "";
  const name = options.imageName ?? (buildConfig.image_name || config.name);
  const tags = options.imageTag ?? [buildConfig.image_tag || config.version];
  const path = [...namespace.split("/").filter((part) => part !== ""), ...name.split("/")];
  if (registry !== "") assert(HOST.test(registry), `the registry '${registry}'`, "HOST or HOST:PORT", "--registry");
  for (const part of path)
    assert(NAME.test(part), `the image name '${path.join("/")}'`, "lower-case letters, digits, '.', '_' and '-'", "--image-name");
  for (const tag of tags) assert(TAG.test(tag), `the tag '${tag}'`, "letters, digits, '.', '_' and '-'", "--image-tag");
  const platforms = (options.platform ?? "").split(",").filter((one) => one !== "");
  for (const one of platforms) assert(PLATFORM.test(one), `the platform '${one}'`, "such as linux/arm64", "--platform");
  const repository = [registry, ...path].filter((part) => part !== "").join("/");
  return {
    references: [...new Set(tags)].map((tag) => `${repository}:${tag}`),
    registry: registry === "" ? null : registry,
    dockerfile: findDockerfile({
      root,
      named: options.dockerfile ?? buildConfig.dockerfile,
      isGiven: options.dockerfile !== undefined,
      exists,
    }),
    context: resolve(root, buildConfig.context || "."),
    platforms,
    buildArgs: options.buildArg ?? {},
    isPushed: options.push === true,
  };
}

/** A file that config.json names may be missing: the template of the original names one in every project. */
function findDockerfile({
  root,
  named,
  isGiven,
  exists,
}: {
  root: string;
  named: string | undefined;
  isGiven: boolean;
  exists: (path: string) => boolean;
}): string | null {
  const file = named || "Dockerfile";
  const path = isAbsolute(file) ? file : join(root, file);
  if (exists(path)) return path;
  if (isGiven)
    throw new Failure(`there is no ${path}`, {
      exit: "usage",
      hint: "Give a file relative to the project with --dockerfile, or leave it out.",
    });
  return null;
}

function assert(isValid: boolean, subject: string, allowed: string, option: string): void {
  if (!isValid)
    throw new Failure(`${subject} is not valid; allowed: ${allowed}`, { exit: "usage", hint: `Give another one with ${option}.` });
}
