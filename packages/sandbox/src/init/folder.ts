import { createHash, randomBytes } from "node:crypto";
import { createReadStream } from "node:fs";
import { lstat, readdir, readlink } from "node:fs/promises";
import { basename, join, posix } from "node:path";
import type { TarEntry, TarType } from "@aenv/contract";
import { TAR_END, tarEntryHeader, tarPaddingBytes } from "@aenv/contract";
import type { InitConnection } from "./connection.ts";
import { isInitError } from "./error.ts";

/** Where folders of the machine are in a sandbox. */
const PARENT = "/aenv/bundles";

export interface SendOptions {
  /** The folder of the sandbox that gets the copy. */
  readonly parent?: string;
  /** The same content has the same path, from whatever folder and server it comes: for parents that sandboxes share. */
  readonly isNamedByContent?: boolean;
  /** The name of the copy, if a program expects it there. */
  readonly name?: string;
  /** A folder of the sandbox that keeps what was sent for other sandboxes, and that others can write to. */
  readonly cache?: string | undefined;
  /** The archive of the folder, if it was read before. */
  readonly archive?: Buffer | undefined;
}

/**
 * Copies a folder of this machine into a sandbox, where every user can read it, and returns its path there. The copy appears complete
 * or not at all. A folder that was sent before is not sent again, so its content must not change.
 */
export async function sendFolder(
  { files }: Pick<InitConnection, "files">,
  folder: string,
  abort: AbortSignal,
  { parent = PARENT, isNamedByContent = false, name, cache, archive }: SendOptions = {},
): Promise<string> {
  const path = posix.join(parent, name ?? (isNamedByContent ? `content-${(await contentDigest(folder)).slice(0, 32)}` : nameOf(folder)));
  const exists = () => files.stat({ path, abort }).then(() => true, orFalse);
  if (await exists()) return path;
  const part = `${path}.${randomBytes(6).toString("hex")}`;
  try {
    if (cache === undefined) await files.unpack({ path: part, archive: archive ?? archiveOf(folder), abort });
    else await unpackKept(files, folder, part, cache, abort);
    await files.rename({ path: part, to: path, abort });
  } catch (error) {
    await files.remove({ path: part, recursive: true }).catch(() => undefined);
    // Another request sent it at the same time.
    if (!isInitError(error) || !(await exists())) throw error;
  }
  return path;
}

/** The archive of a folder, read while the sandbox that gets it starts; undefined if it has more bytes. */
export async function readArchive(folder: string, maxBytes: number): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of archiveOf(folder)) {
    parts.push(part);
    bytes += part.length;
    if (bytes > maxBytes) return undefined;
  }
  return Buffer.concat(parts);
}

/** The name of the kept archive is its digest, which the init checks while it unpacks. */
async function unpackKept(files: InitConnection["files"], folder: string, path: string, cache: string, abort: AbortSignal): Promise<void> {
  const sha256 = await contentDigest(folder);
  const kept = { path, cache: posix.join(cache, `${sha256}.tar`), abort };
  if (await files.unpackCached({ ...kept, sha256 })) return;
  await files.remove({ path, recursive: true, abort }).catch(() => undefined);
  await files.unpack({ ...kept, archive: archiveOf(folder) });
}

/** The name keeps a part that people recognize; the digest makes it unique. */
function nameOf(folder: string): string {
  const digest = createHash("sha256").update(folder).digest("hex").slice(0, 16);
  return `${basename(folder).replace(/[^A-Za-z0-9._-]/g, "_")}-${digest}`;
}

/** Folders do not change, so each is read once. */
const digests = new Map<string, Promise<string>>();
const MAX_DIGESTS = 1_000;

function contentDigest(folder: string): Promise<string> {
  const known = digests.get(folder);
  if (known !== undefined) return known;
  const computing = (async () => {
    const hash = createHash("sha256");
    for await (const part of archiveOf(folder)) hash.update(part);
    return hash.digest("hex");
  })();
  digests.set(folder, computing);
  computing.catch(() => digests.delete(folder));
  for (const oldest of digests.keys()) if (digests.size > MAX_DIGESTS) digests.delete(oldest);
  return computing;
}

function orFalse(error: unknown): boolean {
  if (isInitError(error, "not_found")) return false;
  throw error;
}

/** The files, folders and links of a folder. */
async function* archiveOf(folder: string, below = ""): AsyncGenerator<Uint8Array, void, undefined> {
  for (const name of (await readdir(join(folder, below))).sort()) {
    const shown = posix.join(below, name);
    const source = join(folder, shown);
    const info = await lstat(source);
    if (info.isDirectory()) {
      yield tarEntryHeader(entry(`${shown}/`, "directory", 0o755));
      yield* archiveOf(folder, shown);
    } else if (info.isSymbolicLink()) {
      yield tarEntryHeader({ ...entry(shown, "symlink", 0o777), linkPath: latin1(await readlink(source)) });
    } else if (info.isFile()) {
      yield tarEntryHeader({ ...entry(shown, "file", info.mode & 0o111 ? 0o755 : 0o644), size: info.size });
      if (info.size > 0) for await (const part of createReadStream(source, { end: info.size - 1 })) yield part;
      yield tarPaddingBytes(info.size);
    }
  }
  if (below === "") yield TAR_END;
}

function entry(path: string, type: TarType, mode: number): TarEntry {
  return { path: latin1(path), type, linkPath: "", mode, uid: 0, gid: 0, size: 0, mtimeSeconds: 0, major: 0, minor: 0, attributes: {} };
}

function latin1(text: string): string {
  return Buffer.from(text).toString("latin1");
}
