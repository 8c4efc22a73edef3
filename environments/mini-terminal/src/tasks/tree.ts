import { createHash } from "node:crypto";
import { chmod, lstat, mkdir, readdir, readFile, readlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** Files by their path relative to a folder. Without a mode it is 644. */
export type Files = Readonly<Record<string, string | { readonly content: string; readonly mode: number }>>;

const PLAIN_MODE = 0o644;
/** Larger files are not read: no task has one. */
const MAX_BYTES = 16 * 1024 * 1024;

export async function writeFiles(folder: string, files: Files): Promise<void> {
  for (const [path, file] of Object.entries(files)) {
    const { content, mode } = typeof file === "string" ? { content: file, mode: PLAIN_MODE } : file;
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
    // Not as an option of writeFile, which the umask would change.
    await chmod(join(folder, path), mode);
  }
}

/** Why a file does not have this content; nothing if it has. */
export async function fileProblems(folder: string, path: string, content: string): Promise<string[]> {
  const info = await lstat(join(folder, path)).catch(() => null);
  if (info === null) return [`${path} does not exist`];
  if (!info.isFile()) return [`${path} is not a regular file`];
  if (info.size > MAX_BYTES) return [`${path} is too large`];
  return (await readFile(join(folder, path), "utf8")) === content ? [] : [`${path} has another content than expected`];
}

/** Why a folder does not contain these files and no others; nothing if it does. Modes are compared where they are given. */
export async function treeProblems(folder: string, inside: string, files: Files): Promise<string[]> {
  const problems: string[] = [];
  const found = new Set((await pathsIn(join(folder, inside))).map((path) => join(inside, path)));
  for (const path of found) if (!Object.hasOwn(files, path)) problems.push(`${path} should not exist`);
  for (const [path, file] of Object.entries(files)) {
    problems.push(...(await fileProblems(folder, path, typeof file === "string" ? file : file.content)));
    if (typeof file === "string" || !found.has(path)) continue;
    const mode = (await lstat(join(folder, path))).mode & 0o777;
    if (mode !== file.mode) problems.push(`${path} has the mode ${mode.toString(8)}, not ${file.mode.toString(8)}`);
  }
  return problems;
}

/** A digest of the paths, modes and contents of a folder, without times. */
export async function treeDigest(folder: string): Promise<string> {
  const hash = createHash("sha256");
  for (const path of await pathsIn(folder)) {
    const info = await lstat(join(folder, path)).catch(() => null);
    if (info === null) continue;
    hash.update(`${path}\0${info.mode.toString(8)}\0`);
    if (info.isFile())
      hash.update(
        createHash("sha256")
          .update(await readFile(join(folder, path)))
          .digest(),
      );
    if (info.isSymbolicLink()) hash.update(await readlink(join(folder, path)));
  }
  return hash.digest("hex");
}

/** All that is in a folder and is no folder itself, sorted; nothing if there is no such folder. */
async function pathsIn(folder: string): Promise<string[]> {
  const found: string[] = [];
  const visit = async (inside: string) => {
    for (const entry of await readdir(join(folder, inside), { withFileTypes: true }).catch(() => [])) {
      const path = join(inside, entry.name);
      if (entry.isDirectory()) await visit(path);
      else found.push(path);
    }
  };
  await visit("");
  return found.sort();
}
