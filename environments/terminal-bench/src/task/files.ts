import { readdir, readFile, stat } from "node:fs/promises";
import { universalNewlines } from "../python/text.ts";

export async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isDirectory() === true;
}

export async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => null))?.isFile() === true;
}

export async function isEmptyFolder(path: string): Promise<boolean> {
  return (await readdir(path)).length === 0;
}

/** A text file of a task. It must be UTF-8. */
export async function readText(path: string): Promise<string> {
  const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(await readFile(path));
  return universalNewlines(text);
}
