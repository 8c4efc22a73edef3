import { InvalidValue } from "../fields/field.ts";
import { fnmatch } from "../python/fnmatch.ts";

export interface TaskFilter {
  /** Globs; without any, all tasks are included. */
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly limit?: number | null;
}

/** The tasks of a run: included, not excluded, and then the first ones. An include filter without a match is an error. */
export function selectTasks<T extends { readonly name: string }>(tasks: readonly T[], filter: TaskFilter): T[] {
  const { include = [], exclude = [], limit = null } = filter;
  for (const glob of include) {
    if (!tasks.some(({ name }) => fnmatch(name, glob))) {
      throw new InvalidValue("", `no task matches '${glob}'; there are: ${shownNames(tasks)}`);
    }
  }
  const included = include.length === 0 ? tasks : tasks.filter(({ name }) => include.some((glob) => fnmatch(name, glob)));
  const rest = included.filter(({ name }) => !exclude.some((glob) => fnmatch(name, glob)));
  return limit === null ? rest : rest.slice(0, limit);
}

function shownNames(tasks: readonly { readonly name: string }[]): string {
  const names = tasks.slice(0, 10).map(({ name }) => name);
  return names.join(", ") + (tasks.length > names.length ? `, and ${tasks.length - names.length} more` : "");
}
