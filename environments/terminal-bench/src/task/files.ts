import { lstat, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { universalNewlines } from "@aenv/benchmark";

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

export async function isEmptyFolder(path: string): Promise<boolean> {
  return (await readdir(path)).length === 0;
}

/** The first link on the way from a folder to a path below it; null if there is none. */
export async function findLink(folder: string, path: string): Promise<string | null> {
  const names = path.split("/");
  for (const [i] of names.entries()) {
    const part = names.slice(0, i + 1).join("/");
    if ((await lstat(join(folder, part)).catch(() => null))?.isSymbolicLink() === true) return part;
  }
  return null;
}

/** A text file of a task. It must be UTF-8. */
export async function readText(path: string): Promise<string> {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(path));
  return universalNewlines(text);
}
