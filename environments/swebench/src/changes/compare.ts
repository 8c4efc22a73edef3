import type { SandboxFile } from "@aenv/kit";

/** A file that differs between the agent's repository and that of the image. Null is a side that does not have it. */
export interface Change {
  /** Relative to the repository. */
  readonly path: string;
  readonly before: TreeFile | null;
  readonly after: TreeFile | null;
}

/** What git keeps of a file, without its contents. */
export interface TreeFile {
  readonly mode: "100644" | "100755" | "120000";
  readonly size: number;
  readonly modifiedAt: string;
  /** Target of a link. */
  readonly target: string;
}

/**
 * The files that differ, by their sizes and times: those of an untouched file are those of the image. An agent that hides a change by
 * setting the time back loses the change, and nothing else.
 */
export function compareTrees(before: readonly SandboxFile[], after: readonly SandboxFile[]): Change[] {
  const [old, now] = [treeOf(before), treeOf(after)];
  const paths = [...new Set([...old.keys(), ...now.keys()])].sort();
  return paths.flatMap((path) => {
    const change = { path, before: old.get(path) ?? null, after: now.get(path) ?? null };
    return isSame(change.before, change.after) ? [] : [change];
  });
}

/** Files and links; git has no folders, sockets and devices. */
function treeOf(listed: readonly SandboxFile[]): Map<string, TreeFile> {
  const files = new Map<string, TreeFile>();
  for (const { path, type, size, mode, modifiedAt, target = "" } of listed) {
    if ((type !== "file" && type !== "link") || path.split("/").includes(".git")) continue;
    files.set(path, { mode: type === "link" ? "120000" : mode & 0o100 ? "100755" : "100644", size, modifiedAt, target });
  }
  return files;
}

function isSame(one: TreeFile | null, other: TreeFile | null): boolean {
  if (one === null || other === null) return one === other;
  if (one.mode !== other.mode) return false;
  return one.mode === "120000" ? one.target === other.target : one.size === other.size && one.modifiedAt === other.modifiedAt;
}
