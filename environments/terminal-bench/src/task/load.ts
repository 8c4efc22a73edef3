import { dirname, join, resolve } from "node:path";
import { hazards } from "../compose/compose.ts";
import { type ComposeTask, composeOf, isComposeTask } from "../compose/of-task.ts";
import { InvalidValue } from "../fields/field.ts";
import { YamlSyntaxError } from "../python/pyyaml.ts";
import { loadTb1Task } from "../tb1/load.ts";
import { checkConfig } from "./checks.ts";
import { TomlSyntaxError } from "./config/toml.ts";
import { TaskError } from "./error.ts";
import { findLink, isFile } from "./files.ts";
import { type LoadOptions, loadHarborTask } from "./harbor.ts";
import type { Task } from "./model.ts";

/** The format of a folder; null if it is not a task. */
export async function formatOf(folder: string): Promise<Task["format"] | null> {
  if (await isFile(join(folder, "task.toml"))) return "harbor";
  return (await isFile(join(folder, "task.yaml"))) ? "terminal-bench-1" : null;
}

/** Reads the task of a folder. Throws `TaskError` with every reason why it cannot be used. */
export async function loadTask(folder: string, options: LoadOptions = {}): Promise<Task> {
  const format = await formatOf(folder);
  if (format === null) throw new TaskError(resolve(folder), "it has neither task.toml nor task.yaml, so it is not a task");
  const task = await readTask(folder, format, options);
  const problems = [...checkConfig(task.config), ...(isComposeTask(task) ? await mountProblems(task) : [])];
  if (problems.length > 0) throw new TaskError(task.folder, problems.join("; "));
  return task;
}

/** What a compose file mounts must be files and folders of the task: a link could lead anywhere. */
async function mountProblems(task: ComposeTask): Promise<readonly string[]> {
  const found = hazards(task.definition.compose);
  if (found.length > 0) return found;
  for (const { name, volumes } of composeOf(task, null).order) {
    for (const { source } of volumes) {
      const link = source === null ? null : await findLink(dirname(task.definition.file), source);
      if (link !== null) found.push(`services.${name}.volumes mounts ./${source}, and ${link} is a link: mount what it leads to`);
    }
  }
  return found;
}

async function readTask(folder: string, format: Task["format"], options: LoadOptions): Promise<Task> {
  try {
    return format === "harbor" ? { format, ...(await loadHarborTask(folder, options)) } : { format, ...(await loadTb1Task(folder)) };
  } catch (error) {
    if (
      !(
        error instanceof InvalidValue ||
        error instanceof TomlSyntaxError ||
        error instanceof YamlSyntaxError ||
        error instanceof TypeError ||
        error instanceof RangeError
      )
    )
      throw error;
    const file = format === "harbor" ? "task.toml" : "task.yaml";
    throw new TaskError(resolve(folder), `${file} cannot be read: ${error.message}`, { cause: error });
  }
}
