import { basename } from "node:path";
import { nearestName } from "@aenv/kit";
import { type Dataset, openDataset } from "../dataset/open.ts";
import { loadTask } from "../task/load.ts";
import type { Task } from "../task/model.ts";

/** A task as the platform lists it. */
export interface ListedTask {
  readonly id: string;
  readonly instruction: string;
  readonly [field: string]: unknown;
}

/** The tasks of a dataset by id: the names of their folders. A task is read when it is needed. */
export class TaskLibrary {
  readonly name: string | null;
  readonly #folders: ReadonlyMap<string, string>;
  readonly #tasks = new Map<string, Promise<Task>>();
  #list: Promise<readonly ListedTask[]> | null = null;

  constructor({ name, tasks }: Dataset) {
    this.name = name;
    const folders = new Map<string, string>();
    for (const { folder } of tasks) {
      const id = basename(folder);
      if (folders.has(id)) throw new Error(`the dataset has two tasks in folders named '${id}': ${folders.get(id)} and ${folder}`);
      folders.set(id, folder);
    }
    this.#folders = folders;
  }

  static async open(path: string, reference: string | null): Promise<TaskLibrary> {
    return new TaskLibrary(await openDataset(path, reference));
  }

  get ids(): readonly string[] {
    return [...this.#folders.keys()];
  }

  /** The task with this id, or with this package name, such as `org/name`. */
  async get(id: string): Promise<Task> {
    const own = this.#folders.has(id) ? id : (id.split("/").at(-1) ?? id);
    const folder = this.#folders.get(own);
    if (folder === undefined) {
      const meant = nearestName(id, this.ids);
      throw new Error(
        `there is no task '${id}'; ${meant === null ? `the dataset has ${this.#folders.size} tasks` : `did you mean '${meant}'?`}`,
      );
    }
    const known = this.#tasks.get(own) ?? loadTask(folder);
    this.#tasks.set(own, known);
    return known;
  }

  /** All tasks. One that cannot be read is listed with the reason. */
  list(): Promise<readonly ListedTask[]> {
    this.#list ??= Promise.all(this.ids.map((id) => this.#listed(id)));
    return this.#list;
  }

  async #listed(id: string): Promise<ListedTask> {
    try {
      const task = await this.get(id);
      const { difficulty, category, tags } = task.config.metadata as Record<string, unknown>;
      const shown = Object.entries({ difficulty, category, tags }).filter(([, value]) => value !== undefined && value !== null);
      const steps = task.steps.map(({ config }) => config.name);
      return {
        id,
        instruction: task.steps[0]?.instruction ?? task.instruction,
        name: task.name,
        format: task.format,
        ...Object.fromEntries(shown),
        ...(steps.length > 0 && { steps }),
      };
    } catch (error) {
      return { id, instruction: "", problem: (error as Error).message };
    }
  }
}
