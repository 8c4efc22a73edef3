import { readdir } from "node:fs/promises";
import { join } from "node:path";

/** Folders with generated or installed files. */
const FOREIGN = new Set(["node_modules", "dist", "coverage", ".git", ".venv"]);

/** All files below a folder, as paths relative to it with `/`, sorted. */
export async function listFiles(root: string, folder = ""): Promise<string[]> {
  const files: string[] = [];
  for (const entry of await readdir(join(root, folder), { withFileTypes: true })) {
    const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
    if (entry.isFile()) files.push(path);
    else if (entry.isDirectory() && !FOREIGN.has(entry.name)) files.push(...(await listFiles(root, path)));
  }
  return files.sort();
}
