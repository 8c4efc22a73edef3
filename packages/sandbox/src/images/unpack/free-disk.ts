import { statfsSync } from "node:fs";
import { LimitExceeded } from "./limits.ts";

const MIB = 2 ** 20;
const GIB = 2 ** 30;
/** What may be written between two checks. */
const CHECK_EVERY_BYTES = 4 * 2 ** 20;
const CHECK_EVERY_ENTRIES = 2_000;
/** The part of all files that a file system can have, if it has such a limit. */
const FREE_FILES = 0.02;

/** What stays free on a disk of this size. */
export function reservedBytes(diskBytes: number): number {
  return Math.min(16 * GIB, Math.max(GIB, Math.floor(diskBytes / 20 / MIB) * MIB));
}

/** Throws `LimitExceeded` if the disk of a folder has less left than must stay free. Others write to it too, so the size of what is added says little. */
export function assertFree(folder: string, freeDiskBytes: number | null): void {
  const { bavail, blocks, bsize, files, ffree } = statfsSync(folder);
  const reserved = freeDiskBytes ?? reservedBytes(blocks * bsize);
  if (bavail * bsize < reserved) throw new LimitExceeded("freeDiskBytes", reserved);
  // Some file systems have no number of files.
  if (files > 0 && ffree < files * FREE_FILES) throw new LimitExceeded("freeFiles", Math.ceil(files * FREE_FILES));
}

/** Checks the disk while something is written to it. */
export class DiskWatch {
  readonly #folder: string;
  readonly #freeDiskBytes: number | null;
  #bytes = 0;
  #entries = 0;

  constructor(folder: string, freeDiskBytes: number | null) {
    this.#folder = folder;
    this.#freeDiskBytes = freeDiskBytes;
    assertFree(folder, freeDiskBytes);
  }

  /** `bytes` and `entries` are those since the last call. */
  add(bytes: number, entries = 0): void {
    this.#bytes += bytes;
    this.#entries += entries;
    if (this.#bytes < CHECK_EVERY_BYTES && this.#entries < CHECK_EVERY_ENTRIES) return;
    this.#bytes = 0;
    this.#entries = 0;
    assertFree(this.#folder, this.#freeDiskBytes);
  }
}
