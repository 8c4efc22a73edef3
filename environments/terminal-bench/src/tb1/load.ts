import { basename, join, resolve } from "node:path";
import { copiedHiddenFiles, hiddenFiles, mainService, plainBuild } from "../compose/collapse.ts";
import { parseCompose } from "../compose/compose.ts";
import type { Notes } from "../fields/field.ts";
import { TaskError } from "../task/error.ts";
import { isFile, isFolder, readText } from "../task/files.ts";
import type { EnvironmentDefinition, Solution, Task } from "../task/model.ts";
import { parseSolutionYaml, parseTaskYaml } from "./config.ts";
import { convertConfig, convertInstruction } from "./convert.ts";

/** Reads a task of Terminal-Bench 1 into the same model. */
export async function loadTb1Task(given: string): Promise<Omit<Task, "format">> {
  const folder = resolve(given);
  const notes: Notes = { ignored: [] };
  const tb1 = parseTaskYaml(await readText(join(folder, "task.yaml")), notes);
  const script = join(folder, "run-tests.sh");
  if (!(await isFile(script))) throw new TaskError(folder, "run-tests.sh is missing");
  const { definition, leaks } = await loadDefinition(folder);
  const name = basename(folder);
  return {
    folder,
    name,
    shortName: name,
    instruction: convertInstruction(tb1.instruction),
    config: convertConfig(tb1),
    steps: [],
    definition,
    tests: { folder: (await isFolder(join(folder, "tests"))) ? join(folder, "tests") : null, script },
    solution: await loadSolution(folder),
    parser: tb1.parser_name,
    warnings: [
      ...notes.ignored.map((key) => `task.yaml: '${key}' is not a known key and is ignored`),
      ...leaks.map((file) => `the Dockerfile copies ${file} into the image: the agent can read it`),
    ],
  };
}

async function loadSolution(folder: string): Promise<Solution | null> {
  if (await isFile(join(folder, "solution.sh"))) return { kind: "script", folder, script: "solution.sh" };
  const commands = join(folder, "solution.yaml");
  return (await isFile(commands)) ? { kind: "commands", commands: parseSolutionYaml(await readText(commands)) } : null;
}

async function loadDefinition(folder: string): Promise<{ readonly definition: EnvironmentDefinition; readonly leaks: readonly string[] }> {
  const file = join(folder, "docker-compose.yaml");
  if (!(await isFile(file))) throw new TaskError(folder, "docker-compose.yaml is missing");
  const compose = parseCompose(await readText(file));
  const plain = plainBuild(compose);
  if (plain === null) return { definition: { kind: "compose", file, compose, mainService: mainService(compose), base: null }, leaks: [] };
  if (plain.image !== null) return { definition: { kind: "image", image: plain.image, files: null }, leaks: [] };
  const context = resolve(folder, plain.context);
  if (context !== folder && !context.startsWith(`${folder}/`))
    throw new TaskError(folder, `the build context ${plain.context} is outside of the task`);
  const dockerfile = join(context, plain.dockerfile);
  if (!(await isFile(dockerfile))) throw new TaskError(folder, `${join(plain.context, plain.dockerfile)} is missing`);
  const source = await readText(dockerfile);
  const isWhole = context === folder;
  return {
    definition: { kind: "dockerfile", context, dockerfile: plain.dockerfile, plain, hidden: isWhole ? hiddenFiles(source) : [] },
    leaks: isWhole ? copiedHiddenFiles(source) : [],
  };
}
