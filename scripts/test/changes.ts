import { spawnSync } from "node:child_process";

/** The commit at which this branch left `origin/main`; `HEAD` in a clone without it. */
export function defaultBase(root: string): string {
  const { status, stdout } = git(root, ["merge-base", "HEAD", "origin/main"]);
  return status === 0 ? stdout.trim() : "HEAD";
}

/** The files that differ from a commit: changed, removed, and new ones that git does not ignore. */
export function changedFiles(root: string, base: string): string[] {
  const differing = git(root, ["diff", "--name-only", "--no-renames", "-z", base, "--"]);
  if (differing.status !== 0) throw new Error(`git cannot compare with ${base}: ${differing.stderr.trim()}`);
  const added = git(root, ["ls-files", "--others", "--exclude-standard", "-z"]);
  return [...new Set(`${differing.stdout}${added.stdout}`.split("\0"))].filter((path) => path !== "").sort();
}

function git(root: string, args: readonly string[]) {
  return spawnSync("git", args, { cwd: root, encoding: "utf8", maxBuffer: 64 * 1024 * 1024 });
}
