import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { clusterProgram, temporaryTree } from "@aenv/testing";
import { parseAllDocuments } from "yaml";

export const chart = fileURLToPath(new URL("../../deploy/helm/aenv", import.meta.url));

/** An object of a rendered chart. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly labels?: Readonly<Record<string, string>> };
  readonly [field: string]: unknown;
}

export interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Without a cluster, helm assumes the version that it was built with. */
const KUBE_VERSION = ["--kube-version", "1.34.0"];

/** Runs a program for clusters. A failure is returned, not thrown. */
export function runProgram(name: "helm" | "kubectl", args: readonly string[], input = ""): Promise<Ran> {
  return new Promise((resolve) => {
    const options = { maxBuffer: 2 ** 26, timeout: 5 * 60_000 };
    const child = execFile(clusterProgram(name) ?? name, args, options, (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : typeof error.code === "number" ? error.code : 1, stdout, stderr });
    });
    child.stdin?.end(input);
  });
}

/** The same for commands that must succeed. Returns what they print. */
export async function mustRun(name: "helm" | "kubectl", args: readonly string[], input = ""): Promise<string> {
  const { code, stdout, stderr } = await runProgram(name, args, input);
  if (code !== 0) throw new Error(`${name} ${args.join(" ")} ended with ${code}\n${stdout}${stderr}`);
  return stdout;
}

/** Runs a command of helm with values. */
export async function withValues(values: object, command: (file: string) => Promise<Ran>): Promise<Ran> {
  using tree = temporaryTree();
  const file = join(tree.path, "values.json");
  writeFileSync(file, JSON.stringify(values));
  return await command(file);
}

/** The objects that the chart creates with these values. */
export async function render(values: object = {}, namespace = "aenv"): Promise<Manifest[]> {
  const { code, stdout, stderr } = await tryRender(values, namespace);
  if (code !== 0) throw new Error(stderr);
  return parseManifests(stdout);
}

export function tryRender(values: object, namespace = "aenv"): Promise<Ran> {
  return withValues(values, (file) =>
    runProgram("helm", ["template", "aenv", chart, "--namespace", namespace, "--values", file, ...KUBE_VERSION]),
  );
}

export function parseManifests(text: string): Manifest[] {
  return parseAllDocuments(text)
    .map((document) => document.toJS() as Manifest | null)
    .filter((one) => one !== null);
}

/** A part of an object, such as `spec.template.spec.containers.0`. The caller knows its type. */
export function at<T = object>(value: unknown, path: string): T {
  let part = value;
  for (const key of path.split(".")) part = (part as Readonly<Record<string, unknown>> | undefined)?.[key];
  if (part === undefined) throw new Error(`there is no ${path} in ${JSON.stringify(value)}`);
  return part as T;
}

/** The one object of this kind, and of this name if there are several. */
export function find(manifests: readonly Manifest[], kind: string, name?: string): Manifest {
  const found = manifests.filter((one) => one.kind === kind && (name === undefined || one.metadata.name === name));
  const [first, ...more] = found;
  if (first === undefined || more.length > 0) throw new Error(`${found.length} objects are a ${kind} ${name ?? ""}`);
  return first;
}
