import { posix } from "node:path";
import type { SandboxFile } from "@aenv/kit";
import { isAnchor, isTaken } from "./rules.ts";

/** What a file system contains, by absolute path. Folders come before their content. */
export type Listing = ReadonlyMap<string, SandboxFile>;

/** What has to be done to a sandbox of the image to make it that of the agent. */
export interface Changes {
  /** Paths that the agent has removed or replaced by something of another type. */
  readonly removed: readonly string[];
  /** New folders, and those with another mode or owner. */
  readonly folders: readonly string[];
  readonly files: readonly string[];
  readonly links: readonly string[];
  /** Changes that the rules do not take. */
  readonly leftOut: readonly string[];
}

/**
 * Compares two listings that the platform's own process has made. A change that the agent hides, by restoring size and time of a file,
 * does not reach the verifier, so hiding one gains nothing.
 */
export function compareListings(image: Listing, agent: Listing, taken: readonly string[]): Changes {
  const rules = { isInImage: (path: string) => image.has(path), taken };
  const changes = { removed: [] as string[], folders: [] as string[], files: [] as string[], links: [] as string[] };
  const leftOut: string[] = [];
  const isAllowed = (path: string): boolean => {
    if (isTaken(path, rules)) return true;
    leftOut.push(path);
    return false;
  };
  for (const [path, was] of image) {
    const is = agent.get(path);
    if (is?.type === was.type || isIn(path, changes.removed)) continue;
    if (isAnchor(path)) leftOut.push(path);
    else if (is === undefined ? isAllowed(path) : isTaken(path, rules)) changes.removed.push(path);
  }
  const removed = new Set(changes.removed);
  for (const [path, is] of agent) {
    const was = image.get(path);
    if (was !== undefined && isSame(was, is)) continue;
    const isReplaced = is.type !== "directory" && isAnchor(path);
    if (is.type === "other" || isReplaced || !hasFolders(path, agent, image, removed)) leftOut.push(path);
    else if (isAllowed(path)) changes[LISTS[is.type]].push(path);
  }
  return { ...changes, leftOut };
}

const LISTS = { directory: "folders", file: "files", link: "links" } as const;

/** The time of a folder changes with its content, which is compared by itself. */
function isSame(was: SandboxFile, is: SandboxFile): boolean {
  if (was.type !== is.type || was.uid !== is.uid || was.gid !== is.gid) return false;
  if (is.type === "link") return was.target === is.target;
  if (was.mode !== is.mode) return false;
  return is.type !== "file" || (was.size === is.size && was.modifiedAt === is.modifiedAt);
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

/** New folders that are in no other new folder, with the files in them; other files by themselves. */
export function downloadsOf(files: readonly string[], image: Listing): readonly { readonly path: string; readonly isFolder: boolean }[] {
  const found = new Map<string, boolean>();
  for (const path of files) {
    let top: string | null = null;
    for (let folder = posix.dirname(path); folder !== "/" && !image.has(folder); folder = posix.dirname(folder)) top = folder;
    found.set(top ?? path, top !== null);
  }
  return [...found].map(([path, isFolder]) => ({ path, isFolder }));
}
