import { existsSync, lstatSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Failure } from "../terminal/failure.ts";
import type { TarEntry } from "./tar.ts";

/**
 * Writes an archive's files into a folder that may contain other files. The paths of an archive are checked when it is read; here
 * links that are already in the folder are refused, because they could point outside it.
 */
export function unpackInto(folder: string, entries: readonly TarEntry[]): void {
  for (const { path } of entries) assertNoLinks(folder, path);
  for (const { path, bytes, isExecutable } of entries) {
    const target = join(folder, path);
    mkdirSync(dirname(target), { recursive: true });
    // Renamed into place, so that a link with this name is replaced and not followed.
    const draft = `${target}.${process.pid}.tmp`;
    writeFileSync(draft, bytes, { mode: isExecutable ? 0o755 : 0o644, flag: "wx" });
    renameSync(draft, target);
  }
}

function assertNoLinks(folder: string, path: string): void {
  const parts = path.split("/");
  for (let length = 1; length < parts.length; length++) {
    const parent = join(folder, ...parts.slice(0, length));
    if (!existsSync(parent) && !isLink(parent)) return;
    if (lstatSync(parent).isDirectory()) continue;
    throw new Failure(`${parent} is not a real folder`, { hint: "Remove it, or unpack into another folder." });
  }
}

function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
}
