import { existsSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { checkConfig, type EnvironmentConfig, misspelledFields, nameProblem, versionProblem } from "@aenv/contract";
import { Failure, type Place, type Problem } from "../terminal/failure.ts";
import { findBuiltIn, nearestBuiltIn } from "./benchmarks.ts";
import { parseJsonFile } from "./json-file.ts";

/** An environment's folder and its config.json. */
export interface Project {
  readonly root: string;
  readonly config: EnvironmentConfig;
  /** Probable mistakes in config.json that are no errors. */
  readonly warnings: readonly Problem[];
  /** The location of a value in config.json. */
  placeOf(path: readonly (string | number)[]): Place;
}

/** Reads a project's config.json. Throws all of its problems at once, each with its line. */
export function readProject(workDir: string, cwd: string): Project {
  const root = folderOf(workDir, cwd);
  if (!statSync(root, { throwIfNoEntry: false })?.isDirectory()) {
    const nearest = nearestBuiltIn(workDir);
    const hint = nearest === null ? "Give the folder of a project, or the name of a built-in environment." : `Did you mean ${nearest}?`;
    throw new Failure(`there is no folder ${root}`, { exit: "usage", hint });
  }
  const file = join(root, "config.json");
  const { value, placeOf, placeOfName } = parseJsonFile(file, readConfig(file));
  const checked = checkConfig(value);
  const warnings = misspelledFields(value).map(({ message, path }) => ({ message, place: placeOfName(path) }));
  // A missing field may be there under a misspelled name.
  const hint = warnings.map(({ message }) => message).join("\n") || undefined;
  const problems = checked.ok
    ? versionProblems(checked.config.version, placeOf)
    : checked.problems.map(({ message, path }) => ({ message, place: placeOf(path) }));
  if (!checked.ok || problems.length > 0) throw new Failure(problems, { code: "environment.invalid", hint });
  return { root, config: checked.config, warnings, placeOf };
}

/** The project in a folder, or the built-in environment of this name; null if there is neither. */
export function findProject(named: string, cwd: string): Project | null {
  const folder = resolve(cwd, named);
  if (existsSync(join(folder, "config.json"))) return readProject(folder, cwd);
  const builtIn = findBuiltIn(named);
  return builtIn === null ? null : readProject(builtIn, cwd);
}

/** The same project under another version. */
export function withVersion(project: Project, version: string | undefined): Project {
  if (version === undefined) return project;
  assertVersion(version);
  return { ...project, config: { ...project.config, version } };
}

/** The same project under another name. */
export function withName(project: Project, name: string | undefined): Project {
  if (name === undefined) return project;
  const problem = nameProblem(name);
  if (problem !== null) throw new Failure(problem, { exit: "usage", hint: "Write it as: --name my-env" });
  return { ...project, config: { ...project.config, name } };
}

/** Throws unless a version from the command line is valid. */
export function assertVersion(version: string): void {
  const problem = versionProblem(version);
  if (problem !== null) throw new Failure(problem, { exit: "usage", hint: "Write it as: --version 1.0.0" });
}

function versionProblems(version: string, placeOf: Project["placeOf"]): Problem[] {
  const problem = versionProblem(version);
  return problem === null ? [] : [{ message: `version: ${problem}`, place: placeOf(["version"]) }];
}

/** The folder, or that of the built-in environment of this name if the folder does not exist. */
function folderOf(workDir: string, cwd: string): string {
  const folder = resolve(cwd, workDir);
  return existsSync(folder) ? folder : (findBuiltIn(workDir) ?? folder);
}

function readConfig(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new Failure(`there is no ${file}`, {
      code: "environment.invalid",
      hint: "Change to an environment's folder, give it with --work-dir, or create one with: aenv init my-env",
      cause,
    });
  }
}
