import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkConfig, type EnvironmentConfig, misspelledFields, versionProblem } from "@aenv/contract";
import { Failure, type Place, type Problem } from "../terminal/failure.ts";
import { findBenchmark } from "./benchmarks.ts";
import { parseJsonFile } from "./json-file.ts";

/** An environment's folder and what its config.json says. */
export interface Project {
  readonly root: string;
  readonly config: EnvironmentConfig;
  /** What is probably a mistake in config.json, though it can be read. */
  readonly warnings: readonly Problem[];
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
  const { value, placeOf, placeOfName } = parseJsonFile(file, readConfig(file));
  const checked = checkConfig(value);
  const warnings = misspelledFields(value).map(({ message, path }) => ({ message, place: placeOfName(path) }));
  // A field that is missing may be there under another spelling.
  const hint = warnings.map(({ message }) => message).join("\n") || undefined;
  const problems = checked.ok
    ? versionProblems(checked.config.version, placeOf)
    : checked.problems.map(({ message, path }) => ({ message, place: placeOf(path) }));
  if (!checked.ok || problems.length > 0) throw new Failure(problems, { code: "environment.invalid", hint });
  return { root, config: checked.config, warnings, placeOf };
}

/** The same project under another version. */
export function withVersion(project: Project, version: string | undefined): Project {
  if (version === undefined) return project;
  assertVersion(version);
  return { ...project, config: { ...project.config, version } };
}

/** Refuses what is no version on the command line. */
export function assertVersion(version: string): void {
  const problem = versionProblem(version);
  if (problem !== null) throw new Failure(problem, { exit: "usage", hint: "Write it as: --version 1.0.0" });
}

function versionProblems(version: string, placeOf: Project["placeOf"]): Problem[] {
  const problem = versionProblem(version);
  return problem === null ? [] : [{ message: `version: ${problem}`, place: placeOf(["version"]) }];
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
