import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Failure } from "../terminal/failure.ts";
import { ownFolder } from "./own-package.ts";

/** An environment that is part of this package. Its data is not, and is prepared by a module of the environment. */
export interface Benchmark {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  /** The project folder, which can be run and published. */
  readonly folder: string;
  /** The file of the module that its package exports as `./data`. */
  readonly dataModule: string;
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
  }): Promise<PreparedData>;
}

export interface PreparedData {
  readonly to: string;
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
  if (!existsSync(root)) return [];
  return readdirSync(root).flatMap((name) => findBenchmark(name) ?? []);
}

/** The folder of an environment that comes with this package; null if there is none of this name. */
export function findBuiltIn(name: string): string | null {
  const folder = join(root, name);
  return /^[\w-]+$/.test(name) && existsSync(join(folder, "config.json")) ? folder : null;
}

export function findBenchmark(name: string): Benchmark | null {
  const folder = join(root, name);
  if (!/^[\w-]+$/.test(name) || !existsSync(join(folder, "package.json"))) return null;
  const file: unknown = readJson(join(folder, "package.json")).exports?.["./data"];
  if (typeof file !== "string") return null;
  const { version, description = "" } = readJson(join(folder, "config.json"));
  return { name, version: String(version), description: String(description), folder, dataModule: join(folder, file) };
}

export function getBenchmark(name: string): Benchmark {
  const found = findBenchmark(name);
  if (found !== null) return found;
  const names = listBenchmarks().map((one) => one.name);
  throw new Failure(`there is no benchmark '${name}'; the benchmarks are: ${names.join(", ")}`, {
    exit: "usage",
    hint: "List them with: aenv bench list",
  });
}

export function loadDataModule({ dataModule }: Benchmark): Promise<DataModule> {
  return import(pathToFileURL(dataModule).href);
}

function readJson(file: string): Record<string, unknown> & { exports?: Record<string, unknown> } {
  return JSON.parse(readFileSync(file, "utf8"));
}
