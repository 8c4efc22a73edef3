import { type EnvironmentConfig, isDualContainer, isPlatformError, PlatformError, programPort } from "@aenv/contract";
import type { Listening, SandboxEngine, SandboxSpec } from "@aenv/sandbox";
import { isImageReference } from "../hub/datasource.ts";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { SlotProgram } from "./slot.ts";

/** What a sandbox runs instead of the runner: a command, an image's own server, or only the commands of the owner. */
export interface Program {
  readonly spec: Pick<SandboxSpec, "command" | "arguments" | "image" | "cwd" | "template"> & { readonly listening: Listening };
  /** The bundle with the program's files; null if the image has them. */
  readonly bundleDigest: string | null;
}

export type ProgramSource = Pick<EnvironmentVersion, "name" | "version" | "config" | "artifacts" | "bundleDigest">;

/** What the original sets in the containers of environments, besides name and version. */
export function programVariables({ deployConfig }: EnvironmentConfig): Readonly<Record<string, string>> {
  return { AENV_TYPE: isDualContainer(deployConfig) ? "dualContainer" : "singleContainer" };
}

/** The program of an environment; null if it is a module for the runner. An environment that cannot run here is an error. */
export function programOf(
  environment: ProgramSource,
  engine: Pick<SandboxEngine, "name" | "can" | "templates">,
  args: readonly string[] = [],
): Program | null {
  const { bundleDigest, artifacts, config, name, version } = environment;
  const { runtime } = config;
  const template = templateOf(config, engine);
  if (!isProgram(environment)) return null;
  const unsupported = (why: string) => new PlatformError("instance.unsupported", `${name}@${version} ${why}`);
  const image = artifacts.find(({ type }) => type === "image")?.content;
  // Without images, the command runs in the files of this machine.
  const needsImage = runtime === undefined || bundleDigest === null;
  if (image === undefined && runtime === undefined)
    throw unsupported("has neither a bundle, nor an image, nor a command; publish it with 'aenv push' from its project");
  if (image !== undefined && needsImage && !engine.can.images)
    throw unsupported(
      `is an image, which the engine '${engine.name}' of this server cannot run; start the server with --engine oci or docker`,
    );
  // Not a file of the server, nor an image of its Docker.
  if (image !== undefined && !isImageReference(image))
    throw unsupported(
      `names the image '${image}', which is not a name in a registry, such as host/team/name:tag; an image elsewhere is loaded under such a name with: aenv image load`,
    );
  const listening = runtime === undefined ? listeningOfImage(config) : listeningOfCommand(runtime);
  const isOwnProgram = runtime === undefined && listening.kind !== "none";
  if (args.length > 0 && runtime === undefined && !(isOwnProgram && engine.templates !== undefined))
    throw unsupported(
      `is an image without a command in config.json, and takes no arguments ${isOwnProgram ? `with the engine '${engine.name}'` : "because nothing is started in it"}; name its program in runtime.command`,
    );
  return {
    spec: {
      ...(image !== undefined && engine.can.images && { image }),
      command: runtime === undefined ? [] : [...runtime.command, ...args],
      ...(isOwnProgram && args.length > 0 && { arguments: args }),
      listening,
      ...(runtime?.cwd !== undefined && { cwd: runtime.cwd }),
      ...(template !== undefined && { template }),
    },
    bundleDigest,
  };
}

/** Whether instances are a program of their own, and not a module for the runner. */
export function isProgram({ config, bundleDigest }: Pick<ProgramSource, "config" | "bundleDigest">): boolean {
  return config.runtime !== undefined || bundleDigest === null;
}

/** The template of the operator that the environment names; undefined for the default one, and on engines without templates. */
export function templateOf({ deployConfig }: EnvironmentConfig, { templates }: Pick<SandboxEngine, "templates">): string | undefined {
  const { podTemplate } = deployConfig ?? {};
  // That of two containers is chosen by the engine, if the instance has a second one in its sandbox.
  if (templates === undefined || isDualContainer(deployConfig) || podTemplate?.toLowerCase() === DEFAULT_TEMPLATE) return undefined;
  return podTemplate;
}

/**
 * Refuses an environment whose publisher may not use the template that it names: a template may be privileged. One that lists no owners is
 * for the environments of administrators.
 */
export async function assertTemplateAllowed(
  { name, version, owner, config }: Pick<EnvironmentVersion, "name" | "version" | "owner" | "config">,
  engine: Pick<SandboxEngine, "can" | "templates">,
  isAdministrator: (owner: string) => Promise<boolean>,
): Promise<void> {
  const template = templateOf(config, engine);
  if (template === undefined) return;
  const owners = engine.templates?.owners(template) ?? ["*"];
  if (owners.includes("*") || owners.includes(owner) || (await isAdministrator(owner))) return;
  throw new PlatformError(
    "access.denied",
    `${name}@${version} names the pod template '${template}' (deployConfig.podTemplate), which its publisher '${owner}' may not use; the operator can allow it with the annotation aenv.io/allowed-owners of the template`,
  );
}

/** Waiting processes have it. Its name is compared without regard to case. */
const DEFAULT_TEMPLATE = "singlecontainer";

/** How the gateway treats an instance of the program. */
export function slotProgramOf({ spec: { listening } }: Program): SlotProgram {
  return { hasServer: listening.kind !== "none", healthPath: listening.kind === "port" ? listening.healthPath : null };
}

/** A program that was not found: the error also says how to get it. */
export function explainMissing(error: unknown, { spec }: Program, engine: Pick<SandboxEngine, "can">): unknown {
  if (!isPlatformError(error, "sandbox.start_failed") || !/no such program|program not found/.test(error.message)) return error;
  const [program = ""] = spec.command;
  const hint =
    spec.image !== undefined
      ? `the image ${spec.image} does not have it`
      : engine.can.isolates
        ? `sandboxes without an image have Node and little else: add an image that has '${program}' to artifacts in config.json`
        : "install it on the server's machine, or write its full path in runtime.command";
  return new PlatformError(error.code, `${error.message}; ${hint}`, { cause: error, details: error.details });
}

function listeningOfCommand(runtime: NonNullable<EnvironmentConfig["runtime"]>): Listening {
  return { kind: "port", ...programPort(runtime), healthPath: runtime.healthPath ?? null };
}

function listeningOfImage({ deployConfig = {} }: EnvironmentConfig): Listening {
  const port = deployConfig.service?.port ?? deployConfig.port;
  return port === undefined ? { kind: "none" } : { kind: "port", port, healthPath: deployConfig.healthPath ?? null };
}
