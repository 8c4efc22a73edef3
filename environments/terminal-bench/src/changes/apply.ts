import type { ExactFile, TaskFiles, TaskSandbox } from "@aenv/kit";
import { END_OF_ARCHIVE, headerBytes, padding, type TarEntry } from "../tar/header.ts";
import { readTar } from "../tar/read.ts";
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
  // One after the other: the platform holds only so much of the answers to one environment.
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
  for (const path of removed) yield headerBytes({ ...EMPTY, path: path.slice(1), type: "whiteout" });
  const wanted = new Set(copied.filter((path) => !names.has(path)));
  for await (const { content, ...part } of readTar(await files.export([...wanted]))) {
    const path = `/${part.path}`;
    const type = part.type === "pipe" ? "other" : part.type;
    if (type !== now.get(path)?.type || !wanted.delete(path)) continue;
    yield headerBytes({ ...part, records: copiedRecords(part) });
    yield* content;
    yield padding(part.type === "file" ? part.size : 0);
    missing.delete(path);
  }
  for (const [path, first] of names) {
    // The other name was removed meanwhile.
    if (missing.has(first)) continue;
    yield headerBytes({ ...EMPTY, path: path.slice(1), type: "hard link", target: first.slice(1) });
    missing.delete(path);
  }
  yield END_OF_ARCHIVE;
}

const EMPTY = { size: 0, mode: 0, modifiedSec: 0, target: "" };

/** Times, attributes, and the size of a file with holes. What the header says itself is written anew. */
function copiedRecords({ records = new Map<string, string>() }: TarEntry): ReadonlyMap<string, string> {
  return new Map([...records].filter(([key]) => /^(?:[am]time|AENV\.size|SCHILY\.xattr\..*)$/s.test(key)));
}
