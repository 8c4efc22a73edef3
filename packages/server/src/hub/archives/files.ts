import { link, open, readdir, rename, unlink } from "node:fs/promises";
import { dirname } from "node:path";

/** Moves a finished file into place, durably: after a power failure it is there completely or not at all. */
export async function moveIntoPlace(from: string, to: string): Promise<void> {
  await sync(from);
  await rename(from, to);
  await sync(dirname(to));
}

/** The same, unless the target exists; then false. */
export async function moveIfAbsent(from: string, to: string): Promise<boolean> {
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

/** Flushes a file, or a folder's list of names, to the disk. */
export async function sync(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** The names in a folder; empty if the folder does not exist. */
export async function listNames(folder: string): Promise<string[]> {
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
