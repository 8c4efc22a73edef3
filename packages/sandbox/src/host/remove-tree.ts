import { execFile } from "node:child_process";
import { chmodSync, readdirSync } from "node:fs";
import { opendir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

/** Node removes so many files in the time that the start of a program takes. */
const FEW = 500;

/**
 * Removes a folder with all that is in it, if it is there. A program does that for many files: with `rm` of Node, 200,000 files took 500 MB of
 * memory and stopped this process for seconds, and what is in the folder may come from somebody else.
 */
export async function removeTree(path: string): Promise<void> {
  if (await hasMoreThan(FEW, path)) await promisify(execFile)("rm", ["-rf", "--", path]);
  else await rm(path, { recursive: true, force: true });
}

async function hasMoreThan(count: number, path: string): Promise<boolean> {
  const folders = [path];
  let found = 0;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    // A path that is no folder, or gone, has nothing in it.
    const entries = await opendir(folder).catch(() => []);
    for await (const entry of entries) {
      if (++found > count) return true;
      if (entry.isDirectory()) folders.push(join(folder, entry.name));
    }
  }
  return false;
}

/** Removes a folder, also if its owner lacks write permission in it, as in some package caches. */
export async function removeFolder(path: string): Promise<void> {
  const options = { recursive: true, force: true, maxRetries: 3 } as const;
  try {
    await rm(path, options);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "EACCES" && code !== "EPERM") throw error;
    unlock(path);
    await rm(path, options);
  }
}

function unlock(folder: string): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true })) if (entry.isDirectory()) unlock(join(folder, entry.name));
}
