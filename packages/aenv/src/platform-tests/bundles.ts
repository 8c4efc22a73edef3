import { createHash, randomUUID } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { EnvironmentConfig } from "@aenv/contract";
import { openArchive } from "../bundle/archive.ts";
import { bundleProject } from "../bundle/bundle.ts";
import { LOAD_TIMEOUT_MS } from "../project/load-errors.ts";
import { readProject } from "../project/project.ts";

export interface BundleOptions {
  /** `shared` runs many instances in one process; the name then ends in `-shared`, because it is another environment. */
  readonly isolation?: "instance" | "shared";
  readonly version?: string;
  readonly deployConfig?: Readonly<Record<string, unknown>>;
}

export interface Bundle {
  readonly config: EnvironmentConfig;
  readonly digest: string;
  readonly bytes: Uint8Array;
}

const root = fileURLToPath(new URL("../../../..", import.meta.url));
/** Also used for compiled code, which is keyed by content too. */
export const cacheFolder = join(root, "node_modules/.cache/aenv-platform");
/** Everything that goes into a bundle besides the project. */
const ingredients = ["packages/contract", "packages/kit", "packages/sdk", "packages/aenv/src/bundle", "package-lock.json"];

const made = new Map<string, Promise<Bundle>>();

/** Bundles a project, cached until one of its inputs changes. */
export function bundleOf(path: string, options: BundleOptions = {}): Promise<Bundle> {
  const key = JSON.stringify([path, options]);
  let bundle = made.get(key);
  if (bundle === undefined) {
    bundle = make(path, options);
    made.set(key, bundle);
  }
  return bundle;
}

async function make(path: string, { isolation = "instance", version, deployConfig }: BundleOptions): Promise<Bundle> {
  const project = readProject(path, root);
  const { name } = project.config;
  const config: EnvironmentConfig = {
    ...project.config,
    name: isolation === "shared" ? `${name}-shared` : name,
    ...(version !== undefined && { version }),
    deployConfig: { ...project.config.deployConfig, ...deployConfig, isolation },
  };
  const hash = createHash("sha256").update(JSON.stringify([process.version, config]));
  for (const one of [path, ...ingredients.map((name) => join(root, name))]) addTo(hash, one);
  const file = join(cacheFolder, `${hash.digest("hex")}.tgz`);
  let bytes = read(file);
  if (bytes === null) {
    ({ bytes } = await bundleProject({ ...project, config }, { timeoutMs: LOAD_TIMEOUT_MS, onOutput: () => {} }));
    mkdirSync(cacheFolder, { recursive: true });
    // Written atomically: another test may read it now.
    const part = `${file}.${randomUUID()}`;
    writeFileSync(part, bytes);
    renameSync(part, file);
  }
  return { config, digest: (await openArchive(bytes)).digest, bytes };
}

function addTo(hash: ReturnType<typeof createHash>, path: string): void {
  const own = read(path);
  if (own !== null) return void hash.update(path).update(own);
  for (const entry of readdirSync(path, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (entry.name !== "node_modules" && !entry.name.endsWith(".test.ts")) addTo(hash, join(path, entry.name));
  }
}

/** Null for a folder or a missing file. */
function read(file: string): Uint8Array | null {
  try {
    return readFileSync(file);
  } catch {
    return null;
  }
}
