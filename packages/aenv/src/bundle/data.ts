import { globSync, readFileSync, realpathSync, statSync } from "node:fs";
import { join, relative, sep } from "node:path";
import type { Project } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";
import type { TarEntry } from "./tar.ts";

const NEVER = new Set(["node_modules", ".git"]);

/** The files that `buildConfig.data` names: files, whole folders, and globs such as `data/*.json`. */
export function readData({ root, config, placeOf }: Project): TarEntry[] {
  const paths = new Set<string>();
  config.buildConfig?.data?.forEach((pattern, index) => {
    const found = filesOf(root, pattern);
    if (found.length === 0) {
      throw new Failure([{ message: `buildConfig.data: no file matches "${pattern}"`, place: placeOf(["buildConfig", "data", index]) }], {
        hint: "Name files, folders or globs inside the project, or remove the entry.",
      });
    }
    for (const path of found) paths.add(path);
  });
  return [...paths].sort().map((path) => readInside(root, path));
}

function filesOf(root: string, pattern: string): string[] {
  const clean = pattern.replace(/^\.\//, "").replace(/\/+$/, "");
  const patterns = statSync(join(root, clean), { throwIfNoEntry: false })?.isDirectory() ? [`${clean}/**`] : [clean];
  // Installed packages are data only where a pattern names their folder.
  const isInside = clean.split("/").includes("node_modules");
  const isLeftOut = (name: string) => NEVER.has(name) && !(isInside && name === "node_modules");
  return globSync(patterns, { cwd: root, exclude: isLeftOut })
    .filter((path) => statSync(join(root, path)).isFile())
    .map((path) => path.split(sep).join("/"));
}

/** A symbolic link may point to another file of the project, but not outside it. */
function readInside(root: string, path: string): TarEntry {
  const real = realpathSync(join(root, path));
  if (relative(realpathSync(root), real).startsWith(".."))
    throw new Failure(`the data file ${path} is a symbolic link that points outside the project`);
  return { path, bytes: readFileSync(real), ...((statSync(real).mode & 0o111) !== 0 && { isExecutable: true }) };
}
