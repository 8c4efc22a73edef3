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

/** The hashes that an earlier preparation has written; none if the directory is missing or empty. */
export function readHashes(to: string): Record<string, string> {
  if (!existsSync(to)) return {};
  if (!statSync(to).isDirectory()) throw new Error(`${to} is not a directory; use another path, or remove it`);
  if (existsSync(join(to, HASHES))) return JSON.parse(readFileSync(join(to, HASHES), "utf8")) as Record<string, string>;
  if (readdirSync(to).length === 0) return {};
  throw new Error(`${to} contains other files than prepared data (it has no ${HASHES}); use an empty or a new directory`);
}

/**
 * Writes files into a directory, replacing its `folders` and files of the same names; other files stay. The new directory
 * is written next to it and renamed into place: a reader sees the old directory, the new one, or none.
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
