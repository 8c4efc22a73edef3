import { createHash } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { PlatformError } from "@aenv/contract";
import { readEntries, type TarEntry, writeTar } from "./tar.ts";

/** A bundle as a compressed archive. */
export interface Archive {
  /** sha256 of the archive before compression, in hex: the bundle's address, whatever the compressor. */
  readonly digest: string;
  readonly bytes: Uint8Array;
}

const MAX_UNPACKED_BYTES = 2 ** 30;

export function packArchive(entries: readonly TarEntry[]): Archive {
  const tar = writeTar(entries);
  const bytes = gzipSync(tar, { level: 9 });
  bytes[OS_BYTE] = UNKNOWN_OS;
  return { digest: sha256(tar), bytes };
}

// The gzip header names the system it was made on; 255 means "unknown" (RFC 1952). Its time is 0 already.
const OS_BYTE = 9;
const UNKNOWN_OS = 255;

/** The files of an archive and its address. */
export async function openArchive(bytes: Uint8Array): Promise<{ digest: string; entries: TarEntry[] }> {
  const tar = unzip(bytes);
  return { digest: sha256(tar), entries: await readEntries(tar) };
}

/** Writes an archive's files below `folder`, which it creates. */
export async function unpackArchive(bytes: Uint8Array, folder: string): Promise<void> {
  for (const entry of (await openArchive(bytes)).entries) {
    const path = join(folder, entry.path);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, entry.bytes, { mode: entry.isExecutable ? 0o755 : 0o644 });
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash("sha256").update(bytes).digest("hex");
}

function unzip(bytes: Uint8Array): Uint8Array {
  try {
    return gunzipSync(bytes, { maxOutputLength: MAX_UNPACKED_BYTES });
  } catch (cause) {
    throw new PlatformError("bundle.invalid", "the bundle is not a gzip file, is damaged, or is larger than 1 GiB", { cause });
  }
}
