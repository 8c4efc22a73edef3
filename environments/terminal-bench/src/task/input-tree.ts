import { readdir, readlink, realpath, stat } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { TaskError } from "./error.ts";
import type { IsIgnored } from "./ignore.ts";

/** Throws if a link in a folder of a task leads out of the task, or to a folder that contains it. */
export async function checkInputTree(task: string, path: string, isIgnored: IsIgnored = () => false): Promise<void> {
  await visit({ task, root: await realpath(task), isIgnored }, path, []);
}

interface Tree {
  readonly task: string;
  readonly root: string;
  readonly isIgnored: IsIgnored;
}

async function visit(tree: Tree, path: string, above: readonly string[]): Promise<void> {
  if (tree.isIgnored(path)) return;
  const real = await targetOf(path);
  if (real === null) return;
  const shown = relative(tree.task, path);
  if (real !== tree.root && !real.startsWith(`${tree.root}/`))
    throw new TaskError(tree.task, `${shown} is a link that leads out of the task`);
  if (above.includes(real)) throw new TaskError(tree.task, `${shown} is a link to a folder that contains it`);
  if ((await stat(path).catch(() => null))?.isDirectory() !== true) return;
  for (const name of await readdir(path)) await visit(tree, join(path, name), [...above, real]);
}

/** Where a path leads to, also a link to nothing; null if there is nothing at the path. */
async function targetOf(path: string): Promise<string | null> {
  try {
    return await realpath(path);
  } catch {
    const target = await readlink(path).catch(() => null);
    return target === null ? null : resolve(await realpath(dirname(path)), target);
  }
}
