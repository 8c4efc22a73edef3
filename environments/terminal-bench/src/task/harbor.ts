import { basename, join, relative, resolve } from "node:path";
import type { Notes } from "../fields/field.ts";
import { parseTaskToml } from "./config/toml.ts";
import { loadDefinition, loadVerifierEnvironment } from "./definition.ts";
import { TaskError } from "./error.ts";
import { isFile, isFolder, readText } from "./files.ts";
import { type IsIgnored, ignoreRules } from "./ignore.ts";
import { checkInputTree } from "./input-tree.ts";
import { stripCanary } from "./instruction.ts";
import type { Solution, Task, TaskStep, TestScript } from "./model.ts";
import { loadPriorContext } from "./prior-context.ts";

export interface LoadOptions {
  /** False if the run does not verify: then no test script is needed. */
  readonly verify?: boolean;
}

/** Reads a task with `task.toml`. */
export async function loadHarborTask(given: string, { verify = true }: LoadOptions = {}): Promise<Omit<Task, "format">> {
  const folder = resolve(given);
  const notes: Notes = { ignored: [] };
  const config = parseTaskToml(await readText(join(folder, "task.toml")), "later", notes);
  const { docker_image, os } = config.environment;
  // An empty folder is not kept everywhere; with a prebuilt image nothing is needed from it.
  if (!docker_image && !(await isFolder(join(folder, "environment")))) throw new TaskError(folder, "the folder environment/ is missing");
  const isIgnored = ignoreRules(folder);
  const name = config.task?.name ?? basename(folder);
  const steps: TaskStep[] = [];
  for (const step of config.steps ?? []) steps.push(await loadStep(folder, config, step, isIgnored));
  for (const inner of ["tests", "solution"]) await checkInputTree(folder, join(folder, inner), isIgnored);
  const tests = await loadTests(folder);
  const hasSteps = steps.length > 0;
  const task = {
    folder,
    name,
    shortName: name.split("/").at(-1) ?? name,
    instruction: hasSteps ? "" : await loadInstruction(folder, "instruction.md"),
    config,
    steps,
    definition: await loadDefinition(join(folder, "environment"), docker_image || null),
    tests,
    solution: await loadSolution(join(folder, "solution"), os),
    verifierEnvironment: hasSteps ? null : await loadVerifierEnvironment(folder, config, null),
    isIgnored,
    priorContext: await loadPriorContext(hasSteps ? join(folder, "steps", steps[0]?.config.name ?? "") : folder),
    parser: null,
    warnings: notes.ignored.map((key) => `task.toml: '${key}' is not a known key and is ignored`),
  };
  if (verify) await checkTests(task);
  return task;
}

async function loadInstruction(folder: string, path: string): Promise<string> {
  if (!(await isFile(join(folder, path)))) throw new TaskError(folder, `${path} is missing`);
  return stripCanary(await readText(join(folder, path)));
}

async function loadStep(folder: string, task: Task["config"], config: TaskStep["config"], isIgnored: IsIgnored): Promise<TaskStep> {
  const at = join("steps", config.name);
  if (!(await isFolder(join(folder, at)))) throw new TaskError(folder, `the folder ${at}/ of a step is missing`);
  await checkInputTree(folder, join(folder, at), isIgnored);
  const testsFolder = join(folder, at, "tests");
  const workdirFolder = join(folder, at, "workdir");
  return {
    config,
    instruction: await loadInstruction(folder, join(at, "instruction.md")),
    testsFolder: (await isFolder(testsFolder)) ? testsFolder : null,
    solution: await loadSolution(join(folder, at, "solution"), task.environment.os),
    workdirFolder: (await isFolder(workdirFolder)) ? workdirFolder : null,
    hasSetup: await isFile(join(workdirFolder, "setup.sh")),
    verifierEnvironment: await loadVerifierEnvironment(folder, task, config),
  };
}

async function loadTests(folder: string): Promise<TestScript | null> {
  const tests = join(folder, "tests");
  return (await isFolder(tests)) ? { folder: tests, script: null } : null;
}

/** A folder without the script is kept: the oracle then says what is missing. */
async function loadSolution(folder: string, os: "linux" | "windows"): Promise<Solution | null> {
  return (await isFolder(folder)) ? { kind: "script", folder, script: os === "windows" ? "solve.bat" : "solve.sh" } : null;
}

/** A verification needs a script, unless it is in an image that was made for it. */
async function checkTests({ folder, config, steps, verifierEnvironment, isIgnored }: Omit<Task, "format">): Promise<void> {
  const passes = steps.length === 0 ? [{ verifierEnvironment, config: null }] : steps;
  for (const { verifierEnvironment: own, config: step } of passes) {
    if (own?.hasTests === true) continue;
    const script = (own?.config ?? config.environment).os === "windows" ? "test.bat" : "test.sh";
    const folders = ["tests", ...(step === null ? [] : [`steps/${step.name}/tests`])].reverse();
    const found = await firstFile(folders.map((tests) => join(folder, tests, script)));
    if (found === null) {
      const where =
        step === null
          ? `tests/${script} is missing`
          : `the step '${step.name}' has no ${script} in ${folders.map((one) => `${one}/`).join(" or ")}`;
      throw new TaskError(folder, where);
    }
    if (isIgnored(found)) throw new TaskError(folder, `${relative(folder, found)} is left out by .harborignore`);
  }
}

async function firstFile(paths: readonly string[]): Promise<string | null> {
  for (const path of paths) if (await isFile(path)) return path;
  return null;
}
