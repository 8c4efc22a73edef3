import { existsSync } from "node:fs";
import { mkdtemp, open, readdir, readFile, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isObject, isPlatformError, PlatformError, tryJson } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import { hexOf } from "../hub/archives/digest.ts";
import { isMissing, listNames } from "../hub/archives/files.ts";
import { type BackupFile, type BackupManifest, MANIFEST, STORE } from "./format.ts";
import { type References, referencesOf } from "./references.ts";
import { storeFileOf } from "./store-file.ts";
import { type BackupWriter, contentOf, textOf, writeFolder, writeTar } from "./writers.ts";

export interface BackupOptions {
  readonly config: Pick<ServerConfig, "home" | "store">;
  /** A file whose name ends in `.tar`, or else a folder. It does not exist yet. */
  readonly target: string;
  /** The version of this `aenv`. */
  readonly version: string;
  readonly now?: () => Date;
}

/** Copies of the store until all that it names was found. Versions and snapshots are rarely removed within seconds of each other. */
const ATTEMPTS = 5;

/**
 * Writes the store of a server, and the archives and contents that it names, while the server runs. The store is copied first: what a row
 * names was stored before the row. What was removed since is missing, so the store is copied again then.
 */
export async function backUp({ config, target, version, now = () => new Date() }: BackupOptions): Promise<BackupManifest> {
  const store = storeFileOf(config, "back up");
  if (!existsSync(store))
    throw new PlatformError("store.invalid", `${store} does not exist; pass the server's home with --home, or its store with --store`);
  if (existsSync(target)) throw new PlatformError("request.invalid", `${target} exists already; choose another name`);
  if (!existsSync(dirname(target)))
    throw new PlatformError("request.invalid", `the folder ${dirname(target)} does not exist; create it first`);
  const createdAt = now().toISOString();
  // Beside the target, where there must be space for it anyway. Only its owner can enter it.
  const scratch = await mkdtemp(`${target}.copy-`);
  let writer: BackupWriter | undefined;
  try {
    writer = target.endsWith(".tar") ? await writeTar(target) : await writeFolder(target);
    const home = new HomeCopy(config.home, writer);
    const { copy, references } = await copyAll(store, config.home, scratch, home);
    await home.addFile(STORE, copy);
    const written: BackupManifest = {
      format: "aenv-backup/1",
      version,
      createdAt,
      contents: references.contents,
      notIncluded: [...references.notIncluded],
      damaged: home.missing(references),
      files: [...home.files],
    };
    await writer.add(MANIFEST, textOf(`${JSON.stringify(written, null, 1)}\n`));
    await writer.finish();
    return written;
  } catch (error) {
    await writer?.discard();
    throw isPlatformError(error) ? error : unwritable(target, error);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

async function copyAll(store: string, folder: string, scratch: string, home: HomeCopy): Promise<{ copy: string; references: References }> {
  const { copyDatabase, DatabaseReader } = await import("../stores/sqlite/copy.ts");
  let before = "";
  for (let attempt = 1; ; attempt++) {
    const copy = join(scratch, `store-${attempt}.db`);
    copyDatabase(store, copy);
    using reader = new DatabaseReader(copy);
    const references = referencesOf(reader, folder);
    await home.addAll();
    const missing = home.missing(references).join();
    // What is missing again was not removed meanwhile: it is lost.
    if (missing === "" || missing === before || attempt === ATTEMPTS) return { copy, references };
    before = missing;
    await rm(copy);
  }
}

/** The archives and contents of a home, each copied once. Both are files that never change. */
class HomeCopy {
  readonly files: BackupFile[] = [];
  readonly #home: string;
  readonly #writer: BackupWriter;
  readonly #archives = new Set<string>();
  readonly #snapshots = new Set<string>();
  readonly #tried = new Set<string>();

  constructor(home: string, writer: BackupWriter) {
    this.#home = home;
    this.#writer = writer;
  }

  async addAll(): Promise<void> {
    for (const name of await this.#names("blobs/sha256")) if (name.endsWith(".json")) await this.#addArchive(name.slice(0, 64));
    for (const hex of await this.#names("blobs/snapshots/sha256")) {
      if (!/^[0-9a-f]{64}$/.test(hex) || this.#snapshots.has(hex)) continue;
      const path = pathOf("blobs/snapshots/sha256", hex, hex);
      if ((await this.#tryAdd(path, path)) !== null) this.#snapshots.add(hex);
    }
  }

  async addFile(path: string, from: string): Promise<void> {
    await using file = await open(from, "r");
    this.files.push(await this.#writer.add(path, await contentOf(file)));
  }

  /** What the store names and the home does not have. */
  missing({ archives, snapshots }: References): string[] {
    return [
      ...[...archives].filter(([digest]) => !this.#archives.has(hexOf(digest))).map(([digest, of]) => `the archive ${digest} of ${of}`),
      ...[...snapshots]
        .filter(([digest]) => !this.#snapshots.has(hexOf(digest)))
        .map(([digest, of]) => `the content ${digest} of the snapshot '${of}'`),
    ];
  }

  async #addArchive(hex: string): Promise<void> {
    if (this.#archives.has(hex)) return;
    const path = pathOf("blobs/sha256", hex, `${hex}.json`);
    const record = await readFile(join(this.#home, path), "utf8").then(tryJson, ifMissing);
    if (!isObject(record) || typeof record.file !== "string") return;
    const { file, archiveDigest } = record;
    // Its name in the home is too long for a tar archive.
    const name = `${hex}.tar.gz`;
    const archive = await this.#tryAdd(pathOf("blobs/sha256", hex, file), pathOf("blobs/sha256", hex, name));
    // A damaged archive stays without its record, so it counts as missing, as in a server.
    if (archive === null || archive.digest !== archiveDigest) return;
    this.files.push(await this.#writer.add(path, textOf(JSON.stringify({ ...record, file: name }))));
    this.#archives.add(hex);
  }

  /** Null if the server has removed it. */
  async #tryAdd(from: string, path: string): Promise<BackupFile | null> {
    if (this.#tried.has(path)) return null;
    const opened = await open(join(this.#home, from), "r").catch(ifMissing);
    if (opened === null) return null;
    await using file = opened;
    this.#tried.add(path);
    const added = await this.#writer.add(path, await contentOf(file));
    this.files.push(added);
    return added;
  }

  async #names(folder: string): Promise<string[]> {
    const root = join(this.#home, folder);
    const prefixes = (await listNames(root)).filter((name) => /^[0-9a-f]{2}$/.test(name)).sort();
    return (await Promise.all(prefixes.map((prefix) => readdir(join(root, prefix)).catch(() => [])))).flat().sort();
  }
}

function pathOf(folder: string, hex: string, name: string): string {
  return `${folder}/${hex.slice(0, 2)}/${name}`;
}

function ifMissing(error: unknown): null {
  if (isMissing(error)) return null;
  throw error;
}

function unwritable(target: string, error: unknown): Error {
  if (!(error instanceof Error) || !("syscall" in error)) return error as Error;
  return new PlatformError("store.unavailable", `the backup ${target} could not be written: ${error.message}`, { cause: error });
}
