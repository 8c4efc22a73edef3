import { basename, join, resolve } from "node:path";
import { parseCompose } from "../compose/compose.ts";
import type { Notes } from "../fields/field.ts";
import { verifierMode } from "../verifier/mode.ts";
import type { TaskConfig } from "./config/config.ts";
import { parseTaskToml } from "./config/toml.ts";
import { TaskError } from "./error.ts";
import { isEmptyFolder, isFile, isFolder, readText } from "./files.ts";
import { stripCanary } from "./instruction.ts";
import type { EnvironmentDefinition, Solution, Task, TaskStep, TestScript } from "./model.ts";

export interface LoadOptions {
  /** False if the run does not verify: then no test script is needed. */
  readonly verify?: boolean;
}

/** Reads a task with `task.toml`. */
export async function loadHarborTask(given: string, { verify = true }: LoadOptions = {}): Promise<Omit<Task, "format">> {
  const folder = resolve(given);
  const notes: Notes = { ignored: [] };
  const config = parseTaskToml(await readText(join(folder, "task.toml")), "later", notes);
  // An empty folder is not kept everywhere; with a prebuilt image nothing is needed from it.
  if (config.environment.docker_image === null && !(await isFolder(join(folder, "environment"))))
    throw new TaskError(folder, "the folder environment/ is missing");
  const name = config.task?.name ?? basename(folder);
  const steps: TaskStep[] = [];
  for (const step of config.steps ?? []) steps.push(await loadStep(folder, step));
  const tests = await loadTests(folder);
  if (verify) checkTests(folder, config, steps, tests);
  return {
    folder,
    name,
    shortName: name.split("/").at(-1) ?? name,
    instruction: steps.length > 0 ? "" : await loadInstruction(folder, "instruction.md"),
    config,
    steps,
    definition: await loadDefinition(folder, config),
    tests,
    solution: await loadSolution(join(folder, "solution")),
    parser: null,
    warnings: notes.ignored.map((key) => `task.toml: '${key}' is not a known key and is ignored`),
  };
}

async function loadInstruction(folder: string, path: string): Promise<string> {
  if (!(await isFile(join(folder, path)))) throw new TaskError(folder, `${path} is missing`);
  return stripCanary(await readText(join(folder, path)));
}

async function loadStep(folder: string, config: TaskStep["config"]): Promise<TaskStep> {
  const at = join("steps", config.name);
  if (!(await isFolder(join(folder, at)))) throw new TaskError(folder, `the folder ${at}/ of a step is missing`);
  const testsFolder = join(folder, at, "tests");
  const workdirFolder = join(folder, at, "workdir");
  const solution = await loadSolution(join(folder, at, "solution"));
  return {
    config,
    instruction: await loadInstruction(folder, join(at, "instruction.md")),
    testsFolder: (await isFolder(testsFolder)) ? testsFolder : null,
    hasTestScript: await isFile(join(testsFolder, "test.sh")),
    solution,
    workdirFolder: (await isFolder(workdirFolder)) ? workdirFolder : null,
    hasSetup: await isFile(join(workdirFolder, "setup.sh")),
  };
}

async function loadTests(folder: string): Promise<TestScript | null> {
  const tests = join(folder, "tests");
  if (!(await isFolder(tests))) return null;
  return { folder: tests, script: (await isFile(join(tests, "test.sh"))) ? join(tests, "test.sh") : null };
}

/** A folder without `solve.sh` is kept: the oracle then says what is missing. */
async function loadSolution(folder: string): Promise<Solution | null> {
  return (await isFolder(folder)) ? { kind: "script", folder, script: "solve.sh" } : null;
}

/** A shared verification needs a script; a separate one has it in its image. */
function checkTests(folder: string, config: TaskConfig, steps: readonly TaskStep[], tests: TestScript | null): void {
  const hasShared = tests?.script != null;
  if (steps.length === 0) {
    if (!hasShared && verifierMode(config, null) === "shared") throw new TaskError(folder, "tests/test.sh is missing");
    return;
  }
  for (const step of steps) {
    if (step.hasTestScript || hasShared || verifierMode(config, step.config) === "separate") continue;
    throw new TaskError(folder, `the step '${step.config.name}' has no test.sh in steps/${step.config.name}/tests/ or tests/`);
  }
}

/** What the environment is made from. A prebuilt image is preferred; the files of a folder without a Dockerfile go into the working directory. */
async function loadDefinition(folder: string, { environment }: TaskConfig): Promise<EnvironmentDefinition> {
  const context = join(folder, "environment");
  const hasDockerfile = await isFile(join(context, "Dockerfile"));
  const composePath = join(context, "docker-compose.yaml");
  if (await isFile(composePath)) {
    const built = hasDockerfile ? { context, dockerfile: "Dockerfile" } : null;
    const base = environment.docker_image === null ? built : { image: environment.docker_image };
    return { kind: "compose", file: composePath, compose: parseCompose(await readText(composePath)), mainService: "main", base };
  }
  if (environment.docker_image !== null) {
    const isBare = hasDockerfile || !(await isFolder(context)) || (await isEmptyFolder(context));
    return { kind: "image", image: environment.docker_image, files: isBare ? null : context };
  }
  if (!hasDockerfile) {
    throw new TaskError(
      folder,
      "no environment is defined: set environment.docker_image, or add environment/Dockerfile or docker-compose.yaml",
    );
  }
  return { kind: "dockerfile", context, dockerfile: "Dockerfile" };
}
