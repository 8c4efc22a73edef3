import { createHash, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { copyFile, link, mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { isPlatformError, PlatformError, problemsOf, tryJson } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import { isMissing, sync } from "../hub/archives/files.ts";
import { lockHome } from "../peers/home-lock.ts";
import { type BackupFile, type BackupManifest, isBackupPath, MANIFEST, manifest, STORE } from "./format.ts";
import { damagedBackup, readBackup } from "./readers.ts";
import { referencesOf } from "./references.ts";
import { storeFileOf } from "./store-file.ts";

export interface RestoreOptions {
  readonly config: Pick<ServerConfig, "home" | "store">;
  readonly source: string;
}

/** A new file system has it at its root. */
const IGNORED = ["lost+found"];

/**
 * Restores a backup into a home that is empty. Everything is verified in a folder of the home before any of it gets its place. The store
 * comes last: a server finds all of it or nothing.
 */
export async function restore({ config, source }: RestoreOptions): Promise<BackupManifest> {
  const { home } = config;
  const store = storeFileOf(config, "restore");
  const files = await readBackup(source);
  await assertEmpty(home);
  if (existsSync(store))
    throw new PlatformError("request.invalid", `the store ${store} exists already; a backup is restored only where there is no store`);
  const isNew = (await mkdir(home, { recursive: true, mode: 0o700 })) !== undefined;
  const unlock = lockHome(home);
  const staging = join(home, `restoring-${randomUUID()}`);
  let isRestored = false;
  try {
    await mkdir(staging, { mode: 0o700 });
    const found = await unpack(files, staging, source);
    const verified = await verify(found, staging, source);
    await place(staging, home, store);
    isRestored = true;
    return verified;
  } catch (error) {
    if (isPlatformError(error, "bundle.invalid")) throw damagedBackup(source, error.message.replace(/^the bundle/, "the archive"));
    if (isPlatformError(error) || !(error instanceof Error) || !("syscall" in error)) throw error;
    throw new PlatformError("store.unavailable", `the backup could not be restored into ${home}: ${error.message}`, { cause: error });
  } finally {
    await rm(staging, { recursive: true, force: true });
    unlock();
    if (!isRestored && isNew) await rm(home, { recursive: true, force: true });
  }
}

async function assertEmpty(home: string): Promise<void> {
  const names = await readdir(home).catch((error: unknown) => {
    if (isMissing(error)) return [];
    throw error;
  });
  const kept = names.filter((name) => !IGNORED.includes(name));
  if (kept.length === 0) return;
  const shown = kept.slice(0, 3).join(", ");
  throw new PlatformError(
    "request.invalid",
    `the home ${home} is not empty (${shown}${kept.length > 3 ? ", …" : ""}); a backup is restored into an empty or new folder: choose one with --home`,
  );
}

/** Writes the files below a folder, and returns what was written. */
async function unpack(files: Awaited<ReturnType<typeof readBackup>>, folder: string, source: string): Promise<BackupFile[]> {
  const found: BackupFile[] = [];
  for await (const { path, body } of files) {
    if (!isBackupPath(path)) throw damagedBackup(source, `it contains '${path}', which no backup contains`);
    const target = join(folder, path);
    await mkdir(dirname(target), { recursive: true, mode: 0o700 });
    await using out = await open(target, "wx", 0o600).catch((error: NodeJS.ErrnoException) => {
      throw error.code === "EEXIST" ? damagedBackup(source, `it contains '${path}' twice`) : error;
    });
    const hash = createHash("sha256");
    let bytes = 0;
    for await (const chunk of body) {
      hash.update(chunk);
      bytes += chunk.length;
      await out.writeFile(chunk);
    }
    await out.sync();
    found.push({ path, bytes, digest: `sha256:${hash.digest("hex")}` });
  }
  return found;
}

/** Compares the files with the manifest, and the store with the files. */
async function verify(found: readonly BackupFile[], folder: string, source: string): Promise<BackupManifest> {
  const text = await readFile(join(folder, MANIFEST), "utf8").catch((error: unknown) => {
    throw isMissing(error) ? damagedBackup(source, `it has no ${MANIFEST}, so it is incomplete`) : error;
  });
  const parsed = manifest.safeParse(tryJson(text));
  if (!parsed.success) throw damagedBackup(source, `${MANIFEST} is not valid: ${problemsOf(parsed.error, MANIFEST)}`);
  const listed = new Map(parsed.data.files.map((file) => [file.path, file]));
  for (const { path, bytes, digest } of found) {
    if (path === MANIFEST) continue;
    const file = listed.get(path);
    if (file === undefined) throw damagedBackup(source, `it contains '${path}', which its ${MANIFEST} does not list`);
    if (file.bytes !== bytes || file.digest !== digest)
      throw damagedBackup(source, `'${path}' has ${bytes} bytes with the digest ${digest}, not ${file.bytes} bytes with ${file.digest}`);
    listed.delete(path);
  }
  for (const path of listed.keys()) throw damagedBackup(source, `'${path}' is missing`);
  if (!found.some(({ path }) => path === STORE)) throw damagedBackup(source, `it has no ${STORE}`);
  await verifyStore(found, folder, parsed.data, source);
  return parsed.data;
}

/** The store is readable by this version, and all that it names is there, except what was lost before the backup. */
async function verifyStore(found: readonly BackupFile[], folder: string, { damaged }: BackupManifest, source: string): Promise<void> {
  const { DatabaseReader } = await import("../stores/sqlite/copy.ts");
  using reader = new DatabaseReader(join(folder, STORE));
  const { archives, snapshots } = referencesOf(reader, folder);
  const names = new Set(found.map(({ path }) => path.slice(path.lastIndexOf("/") + 1)));
  const lost = (digest: string) => damaged.some((one) => one.includes(digest));
  for (const [digest, of] of archives)
    if (!names.has(`${digest.slice("sha256:".length)}.json`) && !lost(digest)) throw damagedBackup(source, `it has no archive of ${of}`);
  for (const [digest, of] of snapshots)
    if (!names.has(digest.slice("sha256:".length)) && !lost(digest))
      throw damagedBackup(source, `it has no content of the snapshot '${of}'`);
}

async function place(staging: string, home: string, store: string): Promise<void> {
  const blobs = join(home, "blobs");
  if (existsSync(join(staging, "blobs"))) await rename(join(staging, "blobs"), blobs);
  const draft = `${store}.restoring-${randomUUID()}`;
  try {
    await mkdir(dirname(store), { recursive: true, mode: 0o700 });
    // The store may be on another file system. A link never replaces a file.
    await copyFile(join(staging, STORE), draft);
    await sync(draft);
    await link(draft, store);
    await sync(dirname(store));
  } catch (error) {
    await rm(blobs, { recursive: true, force: true });
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}
