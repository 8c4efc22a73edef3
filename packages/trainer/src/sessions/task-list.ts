import { type ListedTask, type ListedTasks, nearestName, PlatformError, type Task, type TaskChoice } from "@aenv/contract";

/** The choice of a task that the environment lists. */
export type ListedChoice = Exclude<TaskChoice, { readonly inline: unknown }>;

/** The tasks of an environment in its own order, with the position of each in its splits. */
export class TaskList {
  readonly #tasks: readonly ListedTask[];
  readonly #bySplit = new Map<string, ListedTask[]>();
  readonly #byId = new Map<string, ListedTask>();

  constructor(tasks: readonly Task[]) {
    this.#tasks = tasks.map((task, at) => {
      const prompt = task.instruction ?? null;
      const splits = new Set([...(task.split === undefined ? [] : [task.split]), ...(task.splits ?? [])]);
      for (const split of splits) {
        const members = this.#bySplit.get(split) ?? [];
        this.#bySplit.set(split, members);
        members.push({ id: task.id, split, index: members.length, prompt });
      }
      const [first] = splits;
      const listed = first === undefined ? undefined : this.#bySplit.get(first)?.at(-1);
      return listed ?? { id: task.id, split: null, index: at, prompt };
    });
    for (const task of this.#tasks) this.#byId.set(task.id, task);
  }

  get splits(): readonly string[] {
    return [...this.#bySplit.keys()];
  }

  /** All tasks, or those of a split. */
  of(split?: string): readonly ListedTask[] {
    if (split === undefined) return this.#tasks;
    const members = this.#bySplit.get(split);
    if (members !== undefined) return members;
    throw new PlatformError(
      "request.invalid",
      `there is no split '${split}'; ${this.splits.length === 0 ? "the tasks have none" : `there are ${this.splits.join(", ")}`}`,
    );
  }

  page({
    split,
    after,
    limit,
  }: {
    readonly split?: string | undefined;
    readonly after?: string | undefined;
    readonly limit: number;
  }): ListedTasks {
    const all = this.of(split);
    const from = after === undefined ? 0 : all.findIndex(({ id }) => id === after) + 1;
    if (after !== undefined && from === 0)
      throw new PlatformError("request.invalid", `after is '${after}', which is not a task of this list; use 'next' of the page before`);
    const tasks = all.slice(from, from + limit);
    return { tasks, next: from + limit < all.length ? (tasks.at(-1)?.id ?? null) : null };
  }

  /** How much of the memory it takes. */
  get characters(): number {
    return this.#tasks.reduce((sum, { id, prompt }) => sum + id.length + (prompt?.length ?? 0), 0);
  }

  find(id: string): ListedTask | null {
    return this.#byId.get(id) ?? null;
  }

  get(choice: ListedChoice): ListedTask {
    if ("id" in choice) {
      const found = this.find(choice.id);
      if (found !== null) return found;
      const nearest = nearestName(choice.id, [...this.#byId.keys()]);
      throw new PlatformError("task.not_found", `there is no task '${choice.id}'${nearest === null ? "" : `; did you mean '${nearest}'?`}`);
    }
    const members = this.of(choice.split);
    const found = members[choice.index];
    if (found !== undefined) return found;
    throw new PlatformError(
      "task.not_found",
      `there is no task ${choice.index} in split '${choice.split}': it has ${members.length}, counted from 0`,
    );
  }
}
