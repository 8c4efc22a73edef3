import { randomUUID } from "node:crypto";
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";

/** Why the server cannot write. */
export type DiskProblem = "full" | "not writable";

const PROBLEMS: Readonly<Record<string, DiskProblem>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "not writable",
  EIO: "not writable",
};
/** Disk problems only for errors with a path; for processes and ports they mean something else. */
const FILE_PROBLEMS = ["EACCES", "EPERM"];

/** The disk problem behind an error or one of its causes; null if there is none. */
export function diskProblemOf(error: unknown): DiskProblem | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 10; at = at.cause, depth++) {
    const { code = "", path } = at as NodeJS.ErrnoException;
    const problem = PROBLEMS[code];
    if (problem !== undefined) return problem;
    if (path !== undefined && FILE_PROBLEMS.includes(code)) return "not writable";
  }
  return null;
}

/** The error for clients: retryable, and without the server's paths. */
export function diskError(problem: DiskProblem, cause: unknown): PlatformError {
  const message = `the server's disk is ${problem}, so nothing was stored; try again later, or contact the operator of the server`;
  return new PlatformError("store.unavailable", message, { cause, details: { retryAfterSeconds: 10 } });
}

/** With less than this, writes are about to fail. */
const MIN_FREE_BYTES = 2 ** 20;
const CACHE_MS = 1_000;

/** Checks whether folders are writable by writing a file, at most once a second. */
export class DiskProbe {
  readonly #folders: readonly string[];
  #last: { readonly at: number; readonly problem: Promise<DiskProblem | null> } | null = null;

  constructor(folders: readonly string[]) {
    this.#folders = [...new Set(folders)];
  }

  check(): Promise<DiskProblem | null> {
    const now = performance.now();
    if (this.#last === null || now - this.#last.at >= CACHE_MS) this.#last = { at: now, problem: this.#probe() };
    return this.#last.problem;
  }

  async #probe(): Promise<DiskProblem | null> {
    for (const folder of this.#folders) {
      const problem = await probe(folder);
      if (problem !== null) return problem;
    }
    return null;
  }
}

async function probe(folder: string): Promise<DiskProblem | null> {
  const file = join(folder, `.probe-${randomUUID()}`);
  try {
    const { bavail, bsize } = await statfs(folder);
    if (bavail * bsize < MIN_FREE_BYTES) return "full";
    await writeFile(file, "");
    return null;
  } catch (error) {
    return diskProblemOf(error) ?? "not writable";
  } finally {
    await rm(file, { force: true }).catch(() => {});
  }
}
