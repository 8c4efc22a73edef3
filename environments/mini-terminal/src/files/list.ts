import type { Dirent } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join } from "node:path";
import { named } from "./paths.ts";

export interface ListedFile {
  /** Relative to the listed folder. */
  readonly path: string;
  readonly type: "file" | "folder" | "link" | "other";
  /** The size of a file. */
  readonly bytes?: number;
}

export interface FileList {
  readonly entries: readonly ListedFile[];
  /** Whether there are more entries than are listed. */
  readonly is_complete: boolean;
}

/** The content of a folder to some depth, sorted, each folder before its content. Links are listed and not followed. */
export async function listFolder(folder: string, shownPath: string, depth: number, maxEntries: number): Promise<FileList> {
  const entries: ListedFile[] = [];
  const visit = async (inside: string, left: number): Promise<boolean> => {
    const found = await readdir(join(folder, inside), { withFileTypes: true });
    for (const entry of found.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (entries.length >= maxEntries) return false;
      const path = join(inside, entry.name);
      const type = typeOf(entry);
      entries.push({ path, type, ...(type === "file" && { bytes: (await lstat(join(folder, path))).size }) });
      if (type === "folder" && left > 1 && !(await visit(path, left - 1))) return false;
    }
    return true;
  };
  return named(shownPath, async () => ({ is_complete: await visit("", depth), entries }));
}

function typeOf(entry: Dirent): ListedFile["type"] {
  if (entry.isFile()) return "file";
  if (entry.isDirectory()) return "folder";
  return entry.isSymbolicLink() ? "link" : "other";
}
