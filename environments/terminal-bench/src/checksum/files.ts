import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

export interface HashedFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** The digest in hexadecimal. */
  readonly sha256: string;
}

export interface HashOptions {
  /** Whether a file or a folder, given by its absolute path, is left out. */
  readonly isIgnored?: (path: string) => boolean;
  /** Links to files are always followed. */
  readonly followsFolders?: boolean;
}

/** All files below a folder with their hashes. Symbolic links are followed; a link to a folder that contains it is an error. */
export async function hashFiles(folder: string, options: HashOptions = {}): Promise<HashedFile[]> {
  const found: HashedFile[] = [];
  await visit({ root: folder, ...options }, "", [], found);
  return found;
}

interface Tree extends HashOptions {
  readonly root: string;
}

async function visit(tree: Tree, path: string, above: readonly string[], found: HashedFile[]): Promise<void> {
  const { root, isIgnored, followsFolders = true } = tree;
  const folder = join(root, path);
  const real = await realpath(folder);
  if (above.includes(real)) throw new Error(`${folder} is a symbolic link to a folder that contains it`);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const inner = path === "" ? entry.name : `${path}/${entry.name}`;
    if (isIgnored?.(join(root, inner))) continue;
    // A link to nothing counts as nothing.
    const target = await stat(join(root, inner)).catch(() => null);
    if (target === null) continue;
    if (target.isDirectory()) {
      if (followsFolders || !entry.isSymbolicLink()) await visit(tree, inner, [...above, real], found);
    } else if (target.isFile()) found.push({ path: inner, sha256: await hashFile(join(root, inner)) });
  }
}

export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

export function sha256(content: string | Uint8Array): string {
  return createHash("sha256").update(content).digest("hex");
}
