import { existsSync, lstatSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "../terminal/failure.ts";
import type { TarEntry } from "./tar.ts";

/**
 * Writes an archive's files into a folder that may hold others. The paths are safe by themselves; a link that lies in
 * the folder already must not lead them out of it either.
 */
export function unpackInto(folder: string, entries: readonly TarEntry[]): void {
  for (const { path } of entries) demandPlain(folder, path);
  for (const { path, bytes } of entries) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    // Moved into place, so that a link at the end of the path is replaced and not followed.
    const draft = `${target}.${process.pid}.tmp`;
    writeFileSync(draft, bytes, { mode: 0o644, flag: "wx" });
    renameSync(draft, target);
  }
}

function demandPlain(folder: string, path: string): void {
  const parts = path.split("/");
  for (let length = 1; length < parts.length; length++) {
    const parent = join(folder, ...parts.slice(0, length));
    if (!existsSync(parent) && !isLink(parent)) return;
    if (lstatSync(parent).isDirectory()) continue;
    throw new Failure(`${parent} is in the way: it is not a folder of its own`, { hint: "Take it away, or unpack elsewhere." });
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
