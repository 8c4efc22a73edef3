import { basename, join, resolve } from "node:path";
import { type ComposeFile, parseCompose } from "../compose/compose.ts";
import { copiedHiddenFiles, isHidden } from "../compose/hidden.ts";
import { planCompose } from "../compose/plan.ts";
import { tb1Variables } from "../compose/variables.ts";
import type { Notes } from "../fields/field.ts";
import { TaskError } from "../task/error.ts";
import { isFile, isFolder, readText } from "../task/files.ts";
import type { ComposeDefinition, Solution, Task } from "../task/model.ts";
import { parseSolutionYaml, parseTaskYaml } from "./config.ts";
import { convertConfig, convertInstruction } from "./convert.ts";

/** Reads a task of Terminal-Bench 1 into the same model. */
export async function loadTb1Task(given: string): Promise<Omit<Task, "format">> {
  const folder = resolve(given);
  const notes: Notes = { ignored: [] };
  const tb1 = parseTaskYaml(await readText(join(folder, "task.yaml")), notes);
  const script = join(folder, "run-tests.sh");
  if (!(await isFile(script))) throw new TaskError(folder, "run-tests.sh is missing");
  const definition = await loadDefinition(folder);
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
    verifierEnvironment: null,
    isIgnored: () => false,
    priorContext: null,
    parser: tb1.parser_name,
    warnings: [
      ...notes.ignored.map((key) => `task.yaml: '${key}' is not a known key and is ignored`),
      ...(await leaksOf(folder, definition)),
    ],
  };
}

async function loadSolution(folder: string): Promise<Solution | null> {
  if (await isFile(join(folder, "solution.sh"))) return { kind: "script", folder, script: "solution.sh" };
  const commands = join(folder, "solution.yaml");
  return (await isFile(commands)) ? { kind: "commands", commands: parseSolutionYaml(await readText(commands)) } : null;
}

async function loadDefinition(folder: string): Promise<ComposeDefinition> {
  const file = join(folder, "docker-compose.yaml");
  if (!(await isFile(file))) throw new TaskError(folder, "docker-compose.yaml is missing");
  const compose = parseCompose(await readText(file));
  return { kind: "compose", file, compose, mainService: mainService(compose), base: null };
}

/** The service in which the agent works: `client`, else the first one. */
function mainService({ services }: ComposeFile): string {
  const names = Object.keys(services);
  return names.includes("client") ? "client" : (names[0] ?? "client");
}

/** How the agent gets its tests or its solution to see. */
async function leaksOf(folder: string, { compose, mainService }: ComposeDefinition): Promise<readonly string[]> {
  const { main } = planCompose(compose, mainService, tb1Variables(basename(folder), basename(folder), "", ""));
  const mounted = main.volumes.flatMap(({ source }) => (source !== null && isHidden(source) ? [source] : []));
  const leaks = mounted.map((file) => `the compose file mounts ${file}: the agent can read it`);
  if (main.build === null) return leaks;
  const context = resolve(folder, main.build.context);
  if (context !== folder && !context.startsWith(`${folder}/`))
    throw new TaskError(folder, `the build context ${main.build.context} is outside of the task`);
  const dockerfile = resolve(context, main.build.dockerfile);
  if (!(await isFile(dockerfile))) throw new TaskError(folder, `${join(main.build.context, main.build.dockerfile)} is missing`);
  const copied = context === folder ? copiedHiddenFiles(await readText(dockerfile)) : [];
  return [...leaks, ...copied.map((file) => `the Dockerfile copies ${file} into the image: the agent can read it`)];
}
