import { randomUUID } from "node:crypto";
import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { PlatformError } from "@aenv/contract";

/** What keeps this server from writing. */
export type DiskProblem = "full" | "not writable";

const PROBLEMS: Readonly<Record<string, DiskProblem>> = {
  ENOSPC: "full",
  EDQUOT: "full",
  EROFS: "not writable",
  EIO: "not writable",
};
/** These say the same of a file, and other things of a process or a port. */
const FILE_PROBLEMS = ["EACCES", "EPERM"];

/** The disk's part in an error or in one of its causes; null if it has none. */
export function diskProblemOf(error: unknown): DiskProblem | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 10; at = at.cause, depth++) {
    const { code = "", path } = at as NodeJS.ErrnoException;
    const problem = PROBLEMS[code];
    if (problem !== undefined) return problem;
    if (path !== undefined && FILE_PROBLEMS.includes(code)) return "not writable";
  }
  return null;
}

/** What clients are told of it: that it is the server's trouble and may be over later, and nothing of where its files are. */
export function diskError(problem: DiskProblem, cause: unknown): PlatformError {
  const message = `the server's disk is ${problem}, so nothing was stored; try again later, or ask the server's operator`;
  return new PlatformError("store.unavailable", message, { cause, details: { retryAfterSeconds: 10 } });
}

/** With less than this, writes are about to fail. */
const MIN_FREE_BYTES = 2 ** 20;
const BELIEVE_MS = 1_000;

/** Whether files can be written in some folders, found out by writing one, at most once a second. */
export class DiskProbe {
  readonly #folders: readonly string[];
  #last: { readonly at: number; readonly problem: Promise<DiskProblem | null> } | null = null;

  constructor(folders: readonly string[]) {
    this.#folders = [...new Set(folders)];
  }

  check(): Promise<DiskProblem | null> {
    const now = performance.now();
    if (this.#last === null || now - this.#last.at >= BELIEVE_MS) this.#last = { at: now, problem: this.#look() };
    return this.#last.problem;
  }

  async #look(): Promise<DiskProblem | null> {
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
