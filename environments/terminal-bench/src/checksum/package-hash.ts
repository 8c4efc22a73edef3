import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { compareText } from "@aenv/benchmark";
import { ignoreRules } from "../task/ignore.ts";
import { type HashedFile, hashFiles, sha256 } from "./files.ts";
import { gitignore } from "./gitignore.ts";

const ROOT_FILES = new Set(["task.toml", "instruction.md", "README.md", "trajectory.json"]);
const FOLDERS = ["environment/", "tests/", "solution/", "steps/"];
const DEFAULT_IGNORED = ["__pycache__/", "*.pyc", ".DS_Store", "*.swp", "*.swo", "*~"].join("\n");

export interface PackageContent {
  /** The hexadecimal digest; pins write `sha256:` before it. */
  readonly hash: string;
  readonly files: readonly string[];
}

/** The content hash of a task's package, which digests of datasets and lock files pin. */
export async function packageContent(folder: string): Promise<PackageContent> {
  const files = await hashFiles(folder, { isIgnored: ignoreRules(folder), followsFolders: false });
  const isOwn = files.some(({ path }) => path === ".gitignore");
  return packageContentOf(files, isOwn ? await readFile(join(folder, ".gitignore"), "utf8") : null);
}

/** The same for hashed files. `ignored` is the content of the task's own `.gitignore`. */
export function packageContentOf(files: readonly HashedFile[], ignored: string | null): PackageContent {
  const isIgnored = gitignore(ignored ?? DEFAULT_IGNORED);
  const chosen = files
    .filter(({ path }) => ROOT_FILES.has(path) || FOLDERS.some((prefix) => path.startsWith(prefix)))
    .filter(({ path }) => !isIgnored(path))
    .sort((a, b) => compareText(a.path, b.path));
  return {
    hash: sha256(chosen.map(({ path, sha256: hash }) => `${path}\0${hash}\n`).join("")),
    files: chosen.map(({ path }) => path),
  };
}
