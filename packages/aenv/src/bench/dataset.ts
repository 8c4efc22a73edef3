import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, renameSync, rmSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import type { RunSettings } from "@aenv/rollout";
import { homeFolder } from "@aenv/server/folders";
import { type Benchmark, loadDataModule, type PreparedData, type PreparedDomains } from "../project/benchmarks.ts";
import { dataDir } from "../project/data-dir.ts";
import { fetchWithProgress } from "../project/download.ts";
import { Failure } from "../terminal/failure.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { DataOptions } from "./data-options.ts";
import { markUsed, removeExpired } from "./stored-datasets.ts";

/** The prepared data of a benchmark. */
export interface Dataset {
  /** What environments get as AENV_DATA_DIR: the folder of the data, by the benchmark's name. */
  readonly dataDir: string;
  /** The benchmark's own folder in it. */
  readonly folder: string;
  /** The same for the same files, so that a run goes on only with the data that it began with. */
  readonly digest: string;
  /** What `--from` named. */
  readonly from?: string;
  /** What `--domain` named. */
  readonly domains?: readonly string[];
}

export interface PrepareOptions {
  readonly domains?: readonly string[] | undefined;
  readonly isStrict?: boolean;
}

/** The data that `--from` names, prepared in a folder that its content names, or that of `aenv bench data`. */
export async function openDataset(benchmark: Benchmark, { from, domain: domains }: DataOptions, terminal: Terminal): Promise<Dataset> {
  if (from === undefined && domains !== undefined)
    throw new Failure("--domain chooses a part of what --from names", { exit: "usage", hint: "Add: --from DIR_OR_URL" });
  if (from === undefined) return preparedBefore(benchmark, terminal);
  const sets = datasetsFolder(terminal);
  mkdirSync(sets, { recursive: true });
  const part = mkdtempSync(join(sets, ".part-"));
  try {
    const { name } = benchmark;
    const source = sourceOf(from, terminal.cwd);
    await prepareData(benchmark, source, join(part, name), { domains }, terminal);
    const digest = digestOfFolder(part);
    const kept = join(sets, `${name}-${digest.slice("sha256:".length, "sha256:".length + 16)}`);
    if (!existsSync(kept)) renameSync(part, kept);
    markUsed(kept);
    return { dataDir: kept, folder: join(kept, name), digest, from: source, ...(domains && { domains }) };
  } finally {
    rmSync(part, { recursive: true, force: true });
    removeExpired(sets, Date.now());
  }
}

/** Where data of `--from` is kept. */
export function datasetsFolder({ env }: Pick<Terminal, "env">): string {
  return join(homeFolder(env.AENV_HOME), "datasets");
}

/** What a run's settings say about its data. That of a project is in the project. */
export function dataSettings({ digest, dataDir, folder, from, domains }: Dataset): Pick<RunSettings, "data_digest" | "data"> {
  const data = { folder: dataDir, ...(from !== undefined && { from }), ...(domains && { domains: [...domains] }) };
  return { data_digest: digest, ...(dirname(folder) === dataDir && { data }) };
}

function preparedBefore({ name, folder: project, dataModule }: Benchmark, terminal: Terminal): Dataset {
  const all = dataDir(terminal.env);
  const folder = join(all, name);
  if (existsSync(folder)) return { dataDir: all, folder, digest: digestOfFolder(folder) };
  // The environment has its data in its own files.
  if (dataModule === null) return { dataDir: all, folder: project, digest: digestOfFolder(project) };
  throw new Failure(`the data of ${name} is not prepared`, {
    exit: "usage",
    hint: `Name a copy of the benchmark with --from, or prepare it once with: aenv bench data ${name} --from DIR_OR_URL`,
  });
}

/** A URL unchanged, or an absolute path. */
export function sourceOf(from: string, cwd: string): string {
  if (/^https?:\/\//i.test(from)) {
    if (URL.canParse(from)) return from;
    throw new Failure(`'${from}' is not a valid URL`, { exit: "usage", hint: "Write it as https://example.org/benchmark.tar.gz" });
  }
  const scheme = /^([a-z][\w+.-]*):\/\//i.exec(from)?.[1];
  const path = resolve(cwd, from);
  if (scheme === undefined && existsSync(path)) return path;
  throw new Failure(scheme === undefined ? `there is no ${path}` : `'${scheme}:' is not supported`, {
    exit: "usage",
    hint: "Name a checkout of the benchmark, the folder of its data, a .tar.gz archive of a checkout, or its http(s) address with --from.",
  });
}

/** Writes the data of a benchmark. If it fails, nothing was written. */
export async function prepareData(
  benchmark: Benchmark,
  from: string,
  to: string,
  { domains, isStrict = false }: PrepareOptions,
  terminal: Terminal,
): Promise<PreparedData | PreparedDomains> {
  const { prepareData: prepare } = await loadDataModule(benchmark);
  const wanted = { from, to, isStrict, ...(domains && { domains }), fetch: fetchWithProgress(terminal) };
  try {
    // A download has a progress bar instead.
    return await (from.startsWith("http") ? prepare(wanted) : withSpinner(terminal, `Reading ${from}`, () => prepare(wanted)));
  } catch (error) {
    if (error instanceof Failure || (error as NodeJS.ErrnoException).code !== undefined) throw error;
    throw new Failure((error as Error).message, {
      hint: "Nothing was written. See: aenv bench data --help",
      cause: error,
    });
  }
}

/** The digest covers the names and contents of all files, and not their times. */
export function digestOfFolder(folder: string): string {
  const hash = createHash("sha256");
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => !entry.isDirectory());
  const paths = entries.map((entry) => ({ entry, path: relative(folder, join(entry.parentPath, entry.name)) }));
  for (const { entry, path } of paths.sort((one, other) => (one.path < other.path ? -1 : 1))) {
    if (path.split("/").includes("node_modules")) continue;
    const file = join(folder, path);
    const content = entry.isSymbolicLink() ? readlinkSync(file) : entry.isFile() ? readFileSync(file) : "";
    hash.update(`${JSON.stringify(path)} ${createHash("sha256").update(content).digest("hex")}\n`);
  }
  return `sha256:${hash.digest("hex")}`;
}
