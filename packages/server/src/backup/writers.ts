import { createHash } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { PlatformError, tarPadding, writeTarHeader } from "@aenv/contract";
import { sync } from "../hub/archives/files.ts";
import type { BackupFile } from "./format.ts";

/** Bytes to write. */
export interface Source {
  readonly size: number;
  readonly chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}

/** The content of an open file, which does not change. */
export async function contentOf(file: FileHandle): Promise<Source> {
  const { size } = await file.stat();
  return { size, chunks: file.createReadStream({ autoClose: false, highWaterMark: 1 << 20 }) };
}

export function textOf(text: string): Source {
  const bytes = Buffer.from(text);
  return { size: bytes.length, chunks: [bytes] };
}

/** Where a backup is written. It has its name only when it is complete. */
export interface BackupWriter {
  add(path: string, source: Source): Promise<BackupFile>;
  finish(): Promise<void>;
  /** Removes what was written. */
  discard(): Promise<void>;
}

/** A folder with one file for each file. */
export async function writeFolder(target: string): Promise<BackupWriter> {
  const partial = `${target}.partial-${process.pid}`;
  await mkdir(partial, { mode: 0o700 });
  return {
    add: async (path, source) => {
      const file = join(partial, path);
      await mkdir(dirname(file), { recursive: true, mode: 0o700 });
      await using out = await open(file, "wx", 0o600);
      const added = await copy(path, source, out);
      await out.sync();
      return added;
    },
    finish: async () => {
      await rename(partial, target);
      await sync(dirname(target));
    },
    discard: () => rm(partial, { recursive: true, force: true }),
  };
}

const MAX_TAR_BYTES = 8 ** 11 - 1;

/** One tar archive. It is not compressed, because its contents are. */
export async function writeTar(target: string): Promise<BackupWriter> {
  const partial = `${target}.partial-${process.pid}`;
  const out = await open(partial, "wx", 0o600);
  return {
    add: async (path, source) => {
      const { size } = source;
      if (size > MAX_TAR_BYTES)
        throw new PlatformError("request.invalid", `${path} is larger than 8 GiB, which a .tar cannot hold; write the backup to a folder`);
      await out.writeFile(writeTarHeader({ path, size }));
      const added = await copy(path, source, out);
      if (added.bytes !== size) throw new PlatformError("store.unavailable", `${path} has changed while it was copied; try again`);
      await out.writeFile(new Uint8Array(tarPadding(size)));
      return added;
    },
    finish: async () => {
      await out.writeFile(new Uint8Array(1024));
      await out.sync();
      await out.close();
      await rename(partial, target);
      await sync(dirname(target));
    },
    discard: async () => {
      await out.close().catch(() => {});
      await rm(partial, { force: true });
    },
  };
}

async function copy(path: string, { chunks }: Source, out: FileHandle): Promise<BackupFile> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of chunks) {
    hash.update(chunk);
    bytes += chunk.length;
    await out.writeFile(chunk);
  }
  return { path, bytes, digest: `sha256:${hash.digest("hex")}` };
}
