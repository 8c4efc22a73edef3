import { link, open, readdir, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/** Moves a finished file to its place. After this it is there whole even if the power fails, or not at all. */
export async function settle(from: string, to: string): Promise<void> {
  await sync(from);
  await rename(from, to);
  await sync(dirname(to));
}

/** The same, but only if nothing is there yet; false if something is. */
export async function settleFirst(from: string, to: string): Promise<boolean> {
  await sync(from);
  try {
    await link(from, to);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
  await unlink(from);
  await sync(dirname(to));
  return true;
}

/** Waits until the disk has a file, or a folder's list of names. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What is in a folder; nothing if it is not there. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    if (isMissing(error)) return [];
    throw error;
  }
}

export function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException | null)?.code === "ENOENT";
}
