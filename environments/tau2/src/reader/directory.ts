import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

const HASHES = "hashes.json";

/** What an earlier preparation has written down; nothing of a directory that is missing or empty. */
export function readHashes(to: string): Record<string, string> {
  if (!existsSync(to)) return {};
  if (!statSync(to).isDirectory()) throw new Error(`${to} is no directory; name another, or take it away`);
  if (existsSync(join(to, HASHES))) return JSON.parse(readFileSync(join(to, HASHES), "utf8")) as Record<string, string>;
  if (readdirSync(to).length === 0) return {};
  throw new Error(`${to} holds other things than prepared data (it has no ${HASHES}); name an empty or a new directory`);
}

/**
 * Puts files into a directory, in place of its `folders` and of files of the same names; the rest stays. They are
 * written beside it and moved there in one go: whoever looks sees the directory as it was, as it is to be, or none.
 */
export function replaceDirectory(to: string, files: ReadonlyMap<string, string | Buffer>, folders: readonly string[]): void {
  const target = existsSync(to) ? realpathSync(to) : resolve(to);
  mkdirSync(dirname(target), { recursive: true });
  const drafts = mkdtempSync(join(dirname(target), `.${basename(target)}-draft-`));
  try {
    const draft = join(drafts, "new");
    if (existsSync(target)) cpSync(target, draft, { recursive: true });
    for (const folder of folders) rmSync(join(draft, folder), { recursive: true, force: true });
    for (const [path, content] of files) {
      mkdirSync(dirname(join(draft, path)), { recursive: true });
      writeFileSync(join(draft, path), content);
    }
    swap(draft, target, join(drafts, "old"));
  } finally {
    rmSync(drafts, { recursive: true, force: true });
  }
}

function swap(draft: string, target: string, old: string): void {
  if (existsSync(target)) renameSync(target, old);
  try {
    renameSync(draft, target);
  } catch (error) {
    if (existsSync(old)) renameSync(old, target);
    throw error;
  }
}
