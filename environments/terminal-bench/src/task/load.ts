import { join, resolve } from "node:path";
import { hazards } from "../compose/compose.ts";
import { InvalidValue } from "../fields/field.ts";
import { loadTb1Task } from "../tb1/load.ts";
import { YamlSyntaxError } from "../yaml/pyyaml.ts";
import { checkConfig } from "./checks.ts";
import { TomlSyntaxError } from "./config/toml.ts";
import { TaskError } from "./error.ts";
import { isFile } from "./files.ts";
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
  const problems = [...checkConfig(task.config), ...(task.definition.kind === "compose" ? hazards(task.definition.compose) : [])];
  if (problems.length > 0) throw new TaskError(task.folder, problems.join("; "));
  return task;
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
