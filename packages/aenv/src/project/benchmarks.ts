import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { nearestName } from "@aenv/contract";
import { Failure } from "../terminal/failure.ts";
import { ownFolder } from "./own-package.ts";

/** An environment that is part of this package. Its data is not, and is prepared by a module of the environment. */
export interface Benchmark {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The project folder, which can be run and published. */
  readonly folder: string;
  /** The file of the module that its package exports as `./data`; null for a project that has its data in its own files. */
  readonly dataModule: string | null;
  /** The file of the module that its package exports as `./bench`; null if it exports none. */
  readonly benchModule: string | null;
}

/** The exports of a benchmark's `./data`. */
export interface DataModule {
  /** Writes the data directory. If it throws, nothing was written. */
  prepareData(options: {
    readonly from: string;
    readonly to: string;
    readonly domains?: readonly string[];
    readonly isStrict?: boolean;
    readonly fetch?: typeof fetch;
  }): Promise<PreparedData | PreparedDomains>;
}

/** What was written. A module reports facts and warnings, or the domains of a benchmark that has them. */
export interface PreparedData {
  readonly to: string;
  /** Names and values, such as the number of tasks. */
  readonly facts?: readonly (readonly [name: string, value: string])[];
  /** What a person should know before using the data. */
  readonly warnings?: readonly string[];
}

export interface PreparedDomains extends PreparedData {
  readonly domains: readonly string[];
  readonly tools: Readonly<Record<string, number>>;
  readonly prompts: readonly string[];
  readonly ownPrompts: readonly string[];
  readonly hashes: Readonly<Record<string, string>>;
  readonly knownRevision: string;
  readonly differing: readonly string[];
  readonly absent: readonly string[];
  readonly unread: readonly { readonly domain: string; readonly name: string; readonly reason: string }[];
}

/** In a clone the environments are beside the packages; the published package contains them. */
const root = join(ownFolder, import.meta.url.endsWith(".ts") ? "../../environments" : "environments");

export function listBenchmarks(): Benchmark[] {
  return folders()
    .map(benchmarkIn)
    .filter(({ dataModule }) => dataModule !== null);
}

/** The folder of an environment that comes with this package, by its name or that of its folder; null if there is none. */
export function findBuiltIn(name: string): string | null {
  return folders().find((folder) => isNamed(folder, name)) ?? null;
}

/** The names of the environments that come with this package. */
export function builtInNames(): string[] {
  return folders().map((folder) => String(readJson(join(folder, "config.json")).name));
}

/** The built-in environment whose name is most similar to a mistyped one; null if none is similar. */
export function nearestBuiltIn(name: string): string | null {
  return nearestName(name, builtInNames());
}

export function findBenchmark(name: string): Benchmark | null {
  return listBenchmarks().find(({ folder }) => isNamed(folder, name)) ?? null;
}

/** A benchmark of this package, or the project in a folder whose path contains a slash. */
export function getBenchmark(name: string, cwd: string): Benchmark {
  const folder = resolve(cwd, name);
  const isProject = name.includes("/") && existsSync(join(folder, "config.json"));
  const found = isProject ? benchmarkIn(folder) : findBenchmark(name);
  if (found !== null) return found;
  const names = listBenchmarks().map((one) => one.name);
  throw new Failure(`there is no benchmark '${name}'; the benchmarks are: ${names.join(", ")}`, {
    exit: "usage",
    hint: "List them with: aenv bench list",
  });
}

export async function loadDataModule({ name, dataModule }: Benchmark): Promise<DataModule> {
  if (dataModule === null)
    throw new Failure(`${name} has its data in its own files, and none can be prepared for it`, {
      exit: "usage",
      hint: "Leave out --from.",
    });
  return import(pathToFileURL(dataModule).href);
}

/** Folders without a config.json are libraries. */
function folders(): string[] {
  if (!existsSync(root)) return [];
  const all = readdirSync(root).map((name) => join(root, name));
  return all.filter((folder) => existsSync(join(folder, "config.json")));
}

function isNamed(folder: string, name: string): boolean {
  return basename(folder) === name || readJson(join(folder, "config.json")).name === name;
}

function benchmarkIn(folder: string): Benchmark {
  const manifest = join(folder, "package.json");
  const { exports = {} } = existsSync(manifest) ? readJson(manifest) : {};
  const file = (name: string): string | null => (typeof exports[name] === "string" ? join(folder, exports[name]) : null);
  const dataModule = file("./data");
  const { name, version, description = "" } = readJson(join(folder, "config.json"));
  const benchModule = file("./bench");
  return { name: String(name), version: String(version), description: String(description), folder, dataModule, benchModule };
}

function readJson(file: string): Record<string, unknown> & { exports?: Record<string, unknown> } {
  return JSON.parse(readFileSync(file, "utf8"));
}
