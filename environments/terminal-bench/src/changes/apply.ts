import type { ExactFile, TaskFiles, TaskSandbox } from "@aenv/kit";
import { type ArchivedFile, archivedHeader, readArchive, TAR_END, tarPaddingBytes } from "../platform/archive-entry.ts";
import { type Changes, compareListings, type Listing } from "./compare.ts";
import { isCompared } from "./rules.ts";

const MAX_FILES = 1_000_000;

/**
 * Gives a sandbox of the image the files that the agent has changed in another one, but for the folders that are kept. Answers what was not
 * taken.
 */
export async function applyChanges(
  agent: TaskSandbox,
  fresh: TaskSandbox,
  taken: readonly string[],
  kept: readonly string[] = [],
): Promise<readonly string[]> {
  // The folders are listed one after the other: the platform holds only so much of the answers to one environment.
  const image = await listTree(fresh.files, kept);
  const now = await listTree(agent.files, kept);
  const changes = compareListings(image, now, taken);
  const missing = new Set(changes.copied);
  if (changes.removed.length + changes.copied.length > 0) await fresh.files.import(archiveOf(agent.files, changes, now, missing));
  return [...changes.leftOut, ...missing];
}

/** All that is compared. Folders come before their content. */
async function listTree(files: TaskFiles, kept: readonly string[]): Promise<Listing> {
  const found = new Map<string, ExactFile>();
  for (const top of await files.listExactly("/")) {
    const path = `/${top.path}`;
    if (!isCompared(path, kept)) continue;
    found.set(path, top);
    if (top.type !== "directory") continue;
    const listed = await files.listExactly(path, { recursive: true, limit: MAX_FILES });
    const inner = listed.map((file) => ({ path: `${path}/${file.path}`, file }));
    for (const { path: full, file } of inner.sort((a, b) => (a.path < b.path ? -1 : 1))) if (isCompared(full, kept)) found.set(full, file);
  }
  return found;
}

/**
 * One archive with all changes; each path is one that was decided on, and is what was decided on, whatever the agent's sandbox sends. Removes
 * from `missing` what it has written.
 */
async function* archiveOf(
  files: TaskFiles,
  { removed, copied, names }: Changes,
  now: Listing,
  missing: Set<string>,
): AsyncGenerator<Uint8Array> {
  for (const path of removed) yield archivedHeader({ ...EMPTY, path: path.slice(1), type: "whiteout" });
  const wanted = new Set(copied.filter((path) => !names.has(path)));
  for await (const { content, ...part } of readArchive(await files.export([...wanted]))) {
    const path = `/${part.path}`;
    const type = part.type === "pipe" ? "other" : part.type;
    if (type !== now.get(path)?.type || !wanted.delete(path)) continue;
    yield archivedHeader({ ...part, records: copiedRecords(part) });
    yield* content;
    yield tarPaddingBytes(part.type === "file" ? part.size : 0);
    missing.delete(path);
  }
  for (const [path, first] of names) {
    // The other name was removed meanwhile.
    if (missing.has(first)) continue;
    yield archivedHeader({ ...EMPTY, path: path.slice(1), type: "hard link", target: first.slice(1) });
    missing.delete(path);
  }
  yield TAR_END;
}

const EMPTY = { size: 0, mode: 0, modifiedSec: 0, target: "" };

/** Times, attributes, and the size of a file with holes. What the header says itself is written anew. */
function copiedRecords({ records = {} }: ArchivedFile): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(records).filter(([key]) => /^(?:[am]time|AENV\.size|SCHILY\.xattr\..*)$/s.test(key)));
}
