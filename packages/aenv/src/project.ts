import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkConfig, type EnvironmentConfig } from "@aenv/contract";
import { findBenchmark } from "./benchmarks.ts";
import { Failure, type Place } from "./failure.ts";
import { parseJsonFile } from "./json-file.ts";

/** An environment's folder and what its config.json says. */
export interface Project {
  readonly root: string;
  readonly config: EnvironmentConfig;
  /** Where in config.json a value stands. */
  placeOf(path: readonly (string | number)[]): Place;
}

/** Reads a project's config.json; everything wrong with it is told at once, each with its line. */
export function readProject(workDir: string, cwd: string): Project {
  const root = folderOf(workDir, cwd);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
    throw new Failure(`there is no folder ${root}`, { exit: "usage", hint: "Name the project's folder with --work-dir." });
  }
  const file = join(root, "config.json");
  const { value, placeOf } = parseJsonFile(file, readConfig(file));
  const checked = checkConfig(value);
  if (checked.ok) return { root, config: checked.config, placeOf };
  const problems = checked.problems.map(({ message, path }) => ({ message, place: placeOf(path) }));
  throw new Failure(problems, { code: "environment.invalid" });
}

/** A folder; where there is none of this name, the built-in benchmark that is called so. */
function folderOf(workDir: string, cwd: string): string {
  const folder = resolve(cwd, workDir);
  return existsSync(folder) ? folder : (findBenchmark(workDir)?.folder ?? folder);
}

function readConfig(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Failure(`there is no ${file}`, {
      code: "environment.invalid",
      hint: "Go to an environment's folder, name it with --work-dir, or begin one with: aenv init my-env",
      cause,
    });
  }
}
