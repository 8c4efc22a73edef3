import { posix } from "node:path";
import type { ExactFile } from "@aenv/kit";
import { isAnchor, isTaken } from "./rules.ts";

/** What a file system contains, by absolute path. Folders come before their content. */
export type Listing = ReadonlyMap<string, ExactFile>;

/** What has to be done to a sandbox of the image to make it that of the agent. */
export interface Changes {
  /** Paths that the agent has removed or replaced by something of another type. */
  readonly removed: readonly string[];
  /** What is new or different, in the order of the agent's listing. */
  readonly copied: readonly string[];
  /** Those that are another name of a file, and the name of this file that is copied or that the image has. */
  readonly names: ReadonlyMap<string, string>;
  /** Changes that the rules do not take. */
  readonly leftOut: readonly string[];
}

/** Compares two listings that the platform's own process has made. */
export function compareListings(image: Listing, agent: Listing, taken: readonly string[]): Changes {
  const rules = { isInImage: (path: string) => image.has(path), taken };
  const removed: string[] = [];
  const copied = new Set<string>();
  const leftOut = new Set<string>();
  for (const [path, was] of image) {
    const is = agent.get(path);
    if (is?.type === was.type || isIn(path, removed)) continue;
    const isAllowed = !isAnchor(path) && isTaken(path, rules);
    if (isAllowed) removed.push(path);
    else if (is === undefined || isAnchor(path)) leftOut.add(path);
  }
  const gone = new Set(removed);
  const isSame = sameness(image, agent);
  for (const [path, is] of agent) {
    const was = image.get(path);
    if (was !== undefined && isSame(path, was, is)) continue;
    const isReplaced = is.type !== "directory" && isAnchor(path);
    if (!isReplaced && hasFolders(path, agent, image, gone) && isTaken(path, rules)) copied.add(path);
    // The times of a folder change with its content, which is compared by itself.
    else if (was === undefined || is.type !== "directory" || !isSimilar(was, is)) leftOut.add(path);
  }
  // What is written into a folder changes its times, so they are set again.
  for (const folder of new Set([...removed, ...copied].map((path) => posix.dirname(path))))
    if (agent.get(folder)?.type === "directory" && isTaken(folder, rules)) copied.add(folder);
  const isThere = (path: string) => isTaken(path, rules) && (copied.has(path) || (image.has(path) && !leftOut.has(path)));
  return {
    removed,
    copied: [...agent.keys()].filter((path) => copied.has(path)),
    names: namesOf(agent, copied, isThere),
    leftOut: [...leftOut],
  };
}

/** Whether something is the same in both, given what is at a path in the image and in the agent's sandbox. */
function sameness(image: Listing, agent: Listing): (path: string, was: ExactFile, is: ExactFile) => boolean {
  const [firstWas, firstIs] = [firstNames(image), firstNames(agent)];
  const looksSame = (path: string, was: ExactFile, is: ExactFile) =>
    isSimilar(was, is) &&
    (firstWas.get(path) ?? path) === (firstIs.get(path) ?? path) &&
    was.modifiedAt === is.modifiedAt &&
    was.modifiedNs === is.modifiedNs;
  let [same, other] = [0, 0];
  for (const [path, is] of agent) {
    const was = image.get(path);
    if (was?.type !== "file" || !looksSame(path, was, is)) continue;
    if (was.changedAt === is.changedAt) same++;
    else other++;
  }
  // Where each sandbox has copies of the image's files, all of them have other times of change, which then say nothing.
  const isComparable = same > other;
  return (path, was, is) => looksSame(path, was, is) && (is.type !== "file" || !isComparable || was.changedAt === is.changedAt);
}

/** The same in all that does not change by itself. */
function isSimilar(was: ExactFile, is: ExactFile): boolean {
  if (was.type !== is.type || was.uid !== is.uid || was.gid !== is.gid) return false;
  if (was.mode !== is.mode || was.attributes !== is.attributes || was.target !== is.target) return false;
  return is.type !== "file" || was.size === is.size;
}

/** The first name of each file that has several names in the listing. */
function firstNames(listing: Listing): ReadonlyMap<string, string> {
  const [first, found] = [new Map<string, string>(), new Map<string, string>()];
  for (const [path, { inode }] of listing) {
    if (inode === undefined) continue;
    if (!first.has(inode)) first.set(inode, path);
    found.set(path, first.get(inode) ?? path);
  }
  return found;
}

/** A protected file of the image gets no further name: a test that writes to it would write to the file of the image. */
function namesOf(agent: Listing, copied: ReadonlySet<string>, isThere: (path: string) => boolean): ReadonlyMap<string, string> {
  const [first, names] = [new Map<string, string>(), new Map<string, string>()];
  for (const [path, { inode }] of agent) {
    if (inode === undefined || !isThere(path)) continue;
    const name = first.get(inode);
    if (name === undefined) first.set(inode, path);
    else if (copied.has(path)) names.set(path, name);
  }
  return names;
}

/**
 * Whether all that is above a path is a folder, in both sandboxes. A listing of a file system that changes meanwhile may be inconsistent,
 * and where a link of the image stays, a file of the agent would be written to where the link leads.
 */
function hasFolders(path: string, agent: Listing, image: Listing, removed: ReadonlySet<string>): boolean {
  for (let folder = posix.dirname(path); folder !== "/"; folder = posix.dirname(folder)) {
    const was = image.get(folder);
    if (agent.get(folder)?.type !== "directory") return false;
    if (was !== undefined && was.type !== "directory" && !removed.has(folder)) return false;
  }
  return true;
}

/** Whether a removed folder contains the path. Folders come first, so only the last one can. */
function isIn(path: string, removed: readonly string[]): boolean {
  const last = removed.at(-1);
  return last !== undefined && path.startsWith(`${last}/`);
}
