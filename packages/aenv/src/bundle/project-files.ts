import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import type { Project } from "../project/project.ts";
import { hasRuns } from "../project/run-folders.ts";
import { Failure } from "../terminal/failure.ts";
import type { TarEntry } from "./tar.ts";

/** Folders and files that are created on each machine, or that must not be published. */
const LEFT_OUT: readonly RegExp[] = [
  /^\.git$|^\.hg$|^\.svn$/,
  /^node_modules$/,
  /^\.venv$|^venv$|^\.tox$|^\.nox$/,
  /^__pycache__$|\.pyc$|^\.(?:pytest|mypy|ruff)_cache$|\.egg-info$/,
  /^\.env(?:\..*)?$/,
  /^\.DS_Store$|^\.idea$|^\.vscode$/,
];

/** The name of an archive of `aenv build`. */
const ARCHIVE = /-[0-9a-f]{12}\.tar\.gz$/;

const MAX_FILES = 20_000;

export interface ProjectFiles {
  readonly entries: readonly TarEntry[];
  /** What was left out, without what is in folders that were. */
  readonly leftOut: readonly string[];
}

/** All files of a project whose environment is a command, except config.json, which is written for the bundle. */
export function readProjectFiles({ root }: Pick<Project, "root">): ProjectFiles {
  const home = realpathSync(root);
  const entries: TarEntry[] = [];
  const leftOut: string[] = [];
  const visit = (folder: string) => {
    for (const entry of readdirSync(join(home, folder), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      // With runs in the bundle, each run would have other code than the one before.
      if (isLeftOut(entry.name) || (entry.isDirectory() && hasRuns(join(home, path)))) leftOut.push(path);
      else if (entry.isDirectory()) visit(path);
      else if (path !== "config.json") entries.push(...fileOf(home, path, leftOut));
      if (entries.length > MAX_FILES)
        throw new Failure(`the project has more than ${MAX_FILES} files`, {
          hint: "Move what the environment does not need out of the project, or publish it as an image.",
        });
    }
  };
  visit("");
  return { entries, leftOut };
}

function isLeftOut(name: string): boolean {
  return ARCHIVE.test(name) || LEFT_OUT.some((pattern) => pattern.test(name));
}

/** A symbolic link becomes a copy of its file; one that leads to a folder or out of the project is left out, as are sockets and devices. */
function fileOf(home: string, path: string, leftOut: string[]): TarEntry[] {
  const file = join(home, path);
  const found = statSync(file, { throwIfNoEntry: false });
  if (found?.isFile() !== true || relative(home, realpathSync(file)).startsWith("..")) {
    leftOut.push(path);
    return [];
  }
  if (path === "manifest.json")
    throw new Failure("the project has a file manifest.json, which is the name of the bundle's own list of files", {
      hint: "Rename it, or move it into a folder.",
    });
  return [{ path, bytes: readFileSync(file), ...((found.mode & 0o111) !== 0 && { isExecutable: true }) }];
}
