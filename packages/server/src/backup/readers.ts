import { createReadStream } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { PlatformError, readTar } from "@aenv/contract";
import { isMissing } from "../hub/archives/files.ts";

/** A file of a backup. Its body is read before the next file is requested. */
export interface StoredFile {
  readonly path: string;
  readonly body: AsyncIterable<Uint8Array>;
}

/** The files of a backup: of a folder, or of a tar archive. */
export async function readBackup(source: string): Promise<AsyncIterable<StoredFile>> {
  const found = await stat(source).catch((error: unknown) => {
    if (isMissing(error))
      throw new PlatformError("request.invalid", `${source} does not exist; name a backup that 'aenv backup' has written`);
    throw error;
  });
  return found.isDirectory() ? readFolder(source) : readArchive(source);
}

async function* readFolder(source: string): AsyncGenerator<StoredFile> {
  const entries = await readdir(source, { recursive: true, withFileTypes: true });
  for (const entry of entries) {
    if (entry.isDirectory()) continue;
    const file = join(entry.parentPath, entry.name);
    if (!entry.isFile()) throw damagedBackup(source, `it contains ${file}, which is not a plain file`);
    yield { path: relative(source, file), body: createReadStream(file, { highWaterMark: 1 << 20 }) };
  }
}

async function* readArchive(source: string): AsyncGenerator<StoredFile> {
  const bytes = createReadStream(source, { highWaterMark: 1 << 20 });
  try {
    yield* readTar(bytes);
  } finally {
    bytes.destroy();
  }
}

export function damagedBackup(source: string, why: string): PlatformError {
  return new PlatformError("store.damaged", `${source} is damaged or not a backup: ${why}. Nothing was restored; use another backup`);
}
