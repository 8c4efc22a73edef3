import { lstatSync, readdirSync, rmSync, statSync, utimesSync } from "node:fs";
import { join } from "node:path";

/** A prepared dataset of `--from`, which is kept for further runs. */
export interface StoredDataset {
  readonly path: string;
  readonly usedAt: number;
  readonly bytes: number;
}

export interface StoreLimits {
  readonly maxAgeMs: number;
  readonly maxBytes: number;
  /** Data that was used so recently may be in use by another command. */
  readonly keepMs: number;
}

const DAY_MS = 24 * 60 * 60_000;
const LIMITS: StoreLimits = { maxAgeMs: 30 * DAY_MS, maxBytes: 20 * 2 ** 30, keepMs: DAY_MS };

/** The datasets to remove: those that were not used for long, and the least recently used ones while all are too large. */
export function expired(stored: readonly StoredDataset[], now: number, { maxAgeMs, maxBytes, keepMs }: StoreLimits = LIMITS): string[] {
  let total = stored.reduce((sum, { bytes }) => sum + bytes, 0);
  const gone: string[] = [];
  for (const { path, usedAt, bytes } of stored.toSorted((one, other) => one.usedAt - other.usedAt)) {
    const age = now - usedAt;
    if (age <= keepMs || (age <= maxAgeMs && total <= maxBytes)) continue;
    gone.push(path);
    total -= bytes;
  }
  return gone;
}

/** A dataset is used: the time of its folder says so, which is no part of its content. */
export function markUsed(path: string, now = new Date()): void {
  utimesSync(path, now, now);
}

/** Removes what has expired, also parts that were left by commands which were killed. Never fails: it is tried again at the next use. */
export function removeExpired(folder: string, now: number, limits?: StoreLimits): void {
  try {
    const stored = readdirSync(folder).map((name) => {
      const path = join(folder, name);
      return { path, usedAt: statSync(path).mtimeMs, bytes: bytesIn(path) };
    });
    for (const path of expired(stored, now, limits)) rmSync(path, { recursive: true, force: true });
  } catch {
    // Another command removes them at the same time.
  }
}

function bytesIn(folder: string): number {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  return entries.reduce((sum, entry) => sum + lstatSync(join(entry.parentPath, entry.name)).size, 0);
}
