import { readdir, readFile, stat } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type EnvironmentConfig, isObject, messageOf, nameProblem, PlatformError, parseConfig } from "@aenv/contract";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import { locationInProject, withLocation } from "../definition/error-location.ts";
import { takeRegistered } from "../definition/registry.ts";

export interface LoadedEnvironment {
  readonly name: string;
  readonly version: string;
  /** Null for a file without a config.json beside or above it. */
  readonly config: EnvironmentConfig | null;
  /** The project's folder, against which `dataPath` resolves. */
  readonly root: string;
  readonly entries: readonly string[];
  readonly definition: EnvironmentDefinition;
}

// Shared by all copies of this module in a process: a bundle may carry one of its own.
const ROOT = Symbol.for("aenv.kit.root");
const holder = globalThis as Record<symbol, string | undefined>;

/** The path of a data file of the environment: in the project during development, in the bundle when published. */
export function dataPath(path: string): string {
  const full = resolve(holder[ROOT] ?? process.cwd(), path);
  const inside = relative(holder[ROOT] ?? process.cwd(), full);
  if (inside.startsWith("..") || isAbsolute(inside)) {
    throw new PlatformError("environment.invalid", `dataPath('${path}') leads out of the project; data files must be inside it`);
  }
  return full;
}

/** Sets the folder against which `dataPath` resolves. */
export function setDataRoot(root: string): void {
  holder[ROOT] = root;
}

/** Loads an environment from its project's folder, or from a single file. */
export async function loadEnvironment(path: string): Promise<LoadedEnvironment> {
  const full = resolve(path);
  const found = await stat(full).catch(() => null);
  if (found === null) throw new PlatformError("environment.invalid", `no such file or folder: '${path}'`);
  const root = found.isDirectory() ? full : await projectOf(full);
  const config = await readConfig(root);
  const entries = found.isDirectory() ? await findEntries(root, config) : [full];
  setDataRoot(root);
  const definition = await loadDefinition(entries, root);
  const name = config?.name ?? fallbackName(found.isDirectory() ? root : full);
  return { name, version: config?.version ?? "0.0.0", config, root, entries, definition };
}

async function loadDefinition(entries: readonly string[], root: string): Promise<EnvironmentDefinition> {
  takeRegistered();
  let exported: EnvironmentDefinition | null = null;
  for (const entry of entries) {
    const module = await importEntry(entry, root);
    if (!isObject(module.default)) continue;
    if (exported !== null)
      throw invalid(`both ${relative(root, entry)} and an earlier file export an environment; name one as 'main' in config.json`);
    exported = module.default as EnvironmentDefinition;
  }
  const registered = takeRegistered();
  if (exported !== null && registered !== null) {
    throw invalid("the project both exports an environment and calls register*; use one of the two styles");
  }
  const definition = exported ?? registered;
  if (definition !== null) return definition;
  const files = entries.map((entry) => relative(root, entry)).join(", ");
  throw invalid(`${files} defines no environment: export one (export default defineEnvironment({ … })) or call registerTool`);
}

async function importEntry(entry: string, root: string): Promise<{ default?: unknown }> {
  try {
    return (await import(pathToFileURL(entry).href)) as { default?: unknown };
  } catch (error) {
    const location = locationInProject(error, root) ?? { file: entry, line: 1, column: 1 };
    if (error instanceof PlatformError) throw withLocation(error, location);
    const where = `${relative(root, location.file)}:${location.line}`;
    throw new PlatformError("environment.invalid", `${where}: ${messageOf(error)}`, { cause: error, details: { place: location } });
  }
}

async function readConfig(root: string): Promise<EnvironmentConfig | null> {
  const file = join(root, "config.json");
  const text = await readFile(file, "utf8").catch(() => null);
  if (text === null) return null;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw invalid(`config.json is not valid JSON: ${messageOf(error)}`);
  }
  return parseConfig(value);
}

/** The files that define a project's environment: the `main` of its config, else `src/index.*`, else the files of `src`. */
export async function findEntries(root: string, config: EnvironmentConfig | null): Promise<string[]> {
  if (config?.main !== undefined) {
    const main = join(root, config.main);
    if ((await stat(main).catch(() => null))?.isFile()) return [main];
    throw invalid(`config.json: main is "${config.main}", but this file does not exist`);
  }
  const source = join(root, "src");
  const files = (await readdir(source, { withFileTypes: true }).catch(() => [])).filter((one) => one.isFile()).map((one) => one.name);
  for (const index of ["index.ts", "index.mts", "index.js", "index.mjs"]) if (files.includes(index)) return [join(source, index)];
  const entries = files.filter((name) => /\.m?[tj]s$/.test(name) && !/^_|\.(test|d)\.m?[tj]s$/.test(name)).sort();
  if (entries.length > 0) return entries.map((name) => join(source, name));
  throw invalid(`${basename(root)} has no code: write src/index.ts, or name another file as 'main' in config.json`);
}

/** The nearest parent folder with a config.json, else the file's own folder. */
async function projectOf(file: string): Promise<string> {
  for (let at = dirname(file); at !== dirname(at); at = dirname(at)) {
    if ((await stat(join(at, "config.json")).catch(() => null))?.isFile()) return at;
  }
  return dirname(file);
}

function fallbackName(path: string): string {
  const name = basename(path)
    .replace(/\.\w+$/, "")
    .toLowerCase();
  return nameProblem(name) === null ? name : "environment";
}

function invalid(message: string): PlatformError {
  return new PlatformError("environment.invalid", message);
}
