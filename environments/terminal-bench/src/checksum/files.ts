import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";

export interface HashedFile {
  /** Relative to the folder, with `/`. */
  readonly path: string;
  /** In hexadecimal. */
  readonly sha256: string;
  /** Reached through a symbolic link to a folder. */
  readonly isLinked: boolean;
}

/** All files below a folder with their hashes. Symbolic links are followed; a link to a folder that contains it is an error. */
export async function hashFiles(folder: string): Promise<HashedFile[]> {
  const found: HashedFile[] = [];
  await visit(folder, "", false, [], found);
  return found;
}

async function visit(root: string, path: string, isLinked: boolean, above: readonly string[], found: HashedFile[]): Promise<void> {
  const folder = join(root, path);
  const real = await realpath(folder);
  if (above.includes(real)) throw new Error(`${folder} is a symbolic link to a folder that contains it`);
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    const inner = path === "" ? entry.name : `${path}/${entry.name}`;
    const target = await stat(join(root, inner));
    if (target.isDirectory()) await visit(root, inner, isLinked || entry.isSymbolicLink(), [...above, real], found);
    else if (target.isFile()) found.push({ path: inner, sha256: await hashFile(join(root, inner)), isLinked });
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
