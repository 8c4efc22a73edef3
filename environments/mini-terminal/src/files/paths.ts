import { isAbsolute, resolve } from "node:path";

/** A path of a tool: relative to the working folder, or absolute. */
export function pathIn(workFolder: string, path: string): string {
  if (path.includes("\0")) throw new Error("the path contains a NUL character");
  return isAbsolute(path) ? path : resolve(workFolder, path);
}

const MEANINGS: Readonly<Record<string, string>> = {
  ENOENT: "does not exist",
  ENOTDIR: "is not a folder, or is below a file",
  EEXIST: "is not a folder, or is below a file",
  EISDIR: "is a folder",
  EACCES: "may not be accessed",
  EPERM: "may not be changed",
  ELOOP: "is a link that leads to itself",
  ENAMETOOLONG: "has a name that is too long",
  ENOSPC: "cannot be written: the disk is full",
  EROFS: "is on a file system that cannot be written",
};

/** An error of the file system, in words and with the path as the agent wrote it. */
export async function named<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const meaning = MEANINGS[(error as NodeJS.ErrnoException).code ?? ""];
    throw meaning === undefined ? error : new Error(`'${path}' ${meaning}`, { cause: error });
  }
}
