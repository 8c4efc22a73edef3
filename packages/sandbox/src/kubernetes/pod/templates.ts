import { readdirSync, readFileSync } from "node:fs";
import { basename, extname, join } from "node:path";
import { PlatformError } from "@aenv/contract";
import { parse } from "yaml";
import { defaultTemplates } from "./default-templates.ts";
import { OWNERS_ANNOTATION } from "./names.ts";
import { withoutSockets } from "./sockets.ts";
import type { Fields, Pod, PodSpec } from "./types.ts";

/** Pods that sandboxes are made from, by name. */
export interface PodTemplates {
  /** Names are compared without regard to case, because the original writes them in two ways. */
  get(name: string): Pod;
  /** The owners whose environments may name it; `*` for all, empty if it names none. The platform's own are for all. */
  ownersOf(name: string): readonly string[];
  readonly names: readonly string[];
  /** What was left out, and why. */
  readonly warnings: readonly string[];
}

export const DEFAULT_TEMPLATE = "singleContainer";
/** Template of sandboxes with a second container. */
export const DUAL_TEMPLATE = "dualContainer";

/** The templates of a folder, one per file `NAME.yaml`, besides those of the platform. Files with other kinds of objects are skipped. */
export function readTemplates(folder: string | null): PodTemplates {
  const found = new Map<string, Pod>(Object.entries(defaultTemplates).map(([name, pod]) => [name.toLowerCase(), pod]));
  const names = new Set(Object.keys(defaultTemplates));
  const defaults = new Set(found.keys());
  const owners = new Map<string, readonly string[]>();
  const warnings: string[] = [];
  for (const file of folder === null ? [] : templateFiles(folder)) {
    const name = basename(file, extname(file));
    const template = parseTemplate(readFileSync(join(folder as string, file), "utf8"), join(folder as string, file));
    if (template === null) continue;
    const { spec, removed } = withoutSockets(template.spec);
    for (const path of removed) warnings.push(socketWarning(name, path));
    found.set(name.toLowerCase(), { ...template, spec });
    // Every environment without a template of its own has one of these.
    if (!defaults.has(name.toLowerCase())) owners.set(name.toLowerCase(), ownersIn(template));
    names.add(name);
  }
  return {
    names: [...names].sort(),
    warnings,
    ownersOf: (name) => owners.get(name.toLowerCase()) ?? ["*"],
    get: (name) => {
      const pod = found.get(name.toLowerCase());
      if (pod === undefined)
        throw new PlatformError("request.invalid", `there is no pod template '${name}'; this server has ${[...names].sort().join(", ")}`);
      return pod;
    },
  };
}

function ownersIn({ metadata }: Pod): readonly string[] {
  const listed = metadata.annotations?.[OWNERS_ANNOTATION] ?? "";
  return listed
    .split(",")
    .map((owner) => owner.trim())
    .filter((owner) => owner !== "");
}

export function socketWarning(template: string, path: string): string {
  return `pod template '${template}': the volume with ${path} of the machine is left out; sandboxes get no sockets of the machine`;
}

function templateFiles(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /\.ya?ml$/.test(name) && !name.startsWith("."))
      .sort();
  } catch (cause) {
    throw new PlatformError("request.invalid", `the folder of pod templates ${folder} cannot be read: ${(cause as Error).message}`, {
      cause,
    });
  }
}

/** Null for an object that is no pod. */
export function parseTemplate(text: string, path: string): Pod | null {
  const invalid = (why: string) => new PlatformError("request.invalid", `the pod template ${path} ${why}`);
  let value: unknown;
  try {
    value = parse(text);
  } catch (cause) {
    throw invalid(`is not YAML: ${(cause as Error).message}`);
  }
  if (!isFields(value)) throw invalid("is not an object");
  if (value.kind !== "Pod") {
    if (typeof value.kind === "string") return null;
    throw invalid("has no kind; a template of a sandbox is a Pod");
  }
  const { metadata, spec } = value;
  if (!isFields(spec) || !Array.isArray(spec.containers) || spec.containers.length === 0) throw invalid("has no spec.containers");
  for (const [index, container] of spec.containers.entries())
    if (!isFields(container) || typeof container.name !== "string" || container.name === "")
      throw invalid(`has no name in spec.containers[${index}]`);
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "placeholder", ...pick(isFields(metadata) ? metadata : {}, ["labels", "annotations"]) },
    spec: spec as PodSpec,
  };
}

function pick(from: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.filter((name) => isFields(from[name])).map((name) => [name, from[name]]));
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
