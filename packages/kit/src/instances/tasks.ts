import { type JsonObject, messageOf, PlatformError, problemsOf, type Task, task as taskSchema } from "@aenv/contract";
import * as z from "zod";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";
import type { FailureLog } from "./failure-log.ts";

/** Tasks by id, in the order in which they are listed. */
export type TaskSet = ReadonlyMap<string, Task>;

/** The tasks of an environment as a whole, loaded once, and those of single instances. */
export class Tasks {
  readonly #definition: EnvironmentDefinition;
  readonly #log: FailureLog;
  /** Checked lists, by the array that `tasksOf` returned; instances that get the same array share the result. */
  readonly #checked = new WeakMap<readonly Task[], TaskSet>();
  #common: Promise<TaskSet> | undefined;

  constructor(definition: EnvironmentDefinition, log: FailureLog) {
    this.#definition = definition;
    this.#log = log;
  }

  common(): Promise<TaskSet> {
    this.#common ??= this.#load().catch((error: unknown) => {
      this.#common = undefined;
      throw error;
    });
    return this.#common;
  }

  async of(variables: Readonly<Record<string, string>>): Promise<TaskSet> {
    if (this.#definition.tasksOf === undefined) return this.common();
    const { tasksOf } = this.#definition;
    const own = await this.#run("tasksOf", () => tasksOf.call(this.#definition, { variables }));
    if (!Array.isArray(own)) throw new PlatformError("environment.invalid", "tasksOf must return an array of tasks");
    let tasks = this.#checked.get(own);
    if (tasks === undefined) {
      tasks = readTasks(own);
      this.#checked.set(own, tasks);
    }
    return tasks;
  }

  /** Makes a task of what a trainer gave. */
  async inline(given: JsonObject, variables: Readonly<Record<string, string>>): Promise<Task> {
    const { inlineTask } = this.#definition;
    if (inlineTask === undefined) {
      throw new PlatformError("task.invalid", "the environment plays only tasks of its list; give the id of one, not an object");
    }
    let made: Task;
    try {
      made = await inlineTask.call(this.#definition, given, { variables });
    } catch (error) {
      const why = error instanceof z.ZodError ? problemsOf(error, "the task") : messageOf(error);
      throw new PlatformError("task.invalid", `the environment does not accept the task: ${why}`, { cause: error });
    }
    const parsed = taskSchema.safeParse(made);
    if (parsed.success) return parsed.data;
    const problems = parsed.error.issues.map(describeIssue).join("; ");
    throw new PlatformError("environment.invalid", `inlineTask must return a task: ${problems}`);
  }

  async #load(): Promise<TaskSet> {
    const list = (await this.#run("tasks", () => this.#definition.tasks?.())) ?? [];
    if (!Array.isArray(list)) throw new PlatformError("environment.invalid", "tasks must return an array of tasks");
    return readTasks(list);
  }

  async #run<T>(what: string, list: () => T): Promise<Awaited<T>> {
    try {
      return await list();
    } catch (error) {
      if (error instanceof PlatformError) throw error;
      this.#log(what, error);
      throw new PlatformError("task.list_failed", `${what} of the environment failed: ${messageOf(error)}`, { cause: error });
    }
  }
}

function readTasks(list: readonly Task[]): TaskSet {
  const tasks = new Map<string, Task>();
  for (const [at, one] of list.entries()) {
    const parsed = taskSchema.safeParse(one);
    if (!parsed.success)
      throw new PlatformError("environment.invalid", `task ${at + 1} is invalid: ${parsed.error.issues.map(describeIssue).join("; ")}`);
    if (tasks.has(parsed.data.id)) {
      const first = list.findIndex(({ id }) => id === parsed.data.id);
      throw new PlatformError(
        "environment.invalid",
        `tasks ${first + 1} and ${at + 1} have the same id '${parsed.data.id}'; ids must be unique`,
      );
    }
    taskJson(parsed.data);
    tasks.set(parsed.data.id, parsed.data);
  }
  return tasks;
}

function describeIssue({ path, message }: z.core.$ZodIssue): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}

/** A task as JSON, for clients; the environment's own code gets it as its author wrote it. */
export function taskJson(one: Task): Task {
  return jsonOrThrow("environment.invalid", one, `task '${one.id}'`) as Task;
}
