import { isPlatformError, nearestName, type Task } from "@aenv/contract";
import { Environment } from "@aenv/sdk";
import { callServer } from "../platform/platform.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";
import type { Source } from "./source.ts";

export interface TaskChoice {
  readonly split?: string;
  readonly task?: readonly string[];
}

const LISTED = 20;

/** The tasks to be played: all, those of one split, or the named ones. Throws if there are none of that split or name. */
export async function listTasks(source: Source, { split, task }: TaskChoice, terminal: Terminal): Promise<Task[]> {
  const list = (filter: { readonly split?: string }) =>
    callServer(terminal, "Listing the tasks", () =>
      Environment.use(source.environment, source.options, (env) => env.tasks(filter).catch(noTasks)),
    );
  const tasks = await list(split === undefined ? {} : { split });
  const chosen = task === undefined ? tasks : tasks.filter(({ id }) => task.includes(id));
  const isComplete = task === undefined ? split === undefined || tasks.length > 0 : task.every((id) => chosen.some((one) => one.id === id));
  if (!isComplete)
    assertChosen(source.environment, split === undefined ? tasks : await list({}), { ...(split && { split }), ...(task && { task }) });
  return chosen;
}

/** The original's servers have no route for tasks. */
function noTasks(error: unknown): Task[] {
  if (isPlatformError(error, "instance.unsupported")) return [];
  throw error;
}

/** Throws if there is no task of the split or of a name that was chosen: it names the nearest one and lists what there is. */
export function assertChosen(environment: string, all: readonly Task[], { split, task = [] }: TaskChoice): void {
  const splits = [...new Set(all.flatMap(splitsOf))].sort();
  if (split !== undefined && !splits.includes(split)) throw unknown(environment, "split", split, splits);
  const within = split === undefined ? all : all.filter((one) => splitsOf(one).includes(split));
  const ids = within.map(({ id }) => id);
  const missing = task.find((wanted) => !ids.includes(wanted));
  if (missing === undefined) return;
  const place = split === undefined ? "" : ` in the split '${split}'`;
  throw unknown(environment, "task", missing, ids, place);
}

function splitsOf({ split, splits = [] }: Task): string[] {
  return split === undefined ? splits : [split, ...splits];
}

function unknown(environment: string, what: "task" | "split", wanted: string, known: readonly string[], place = ""): Failure {
  const nearest = nearestName(wanted, known);
  const more = known.length > LISTED ? `, and ${known.length - LISTED} more` : "";
  const list = known.length === 0 ? `It has no ${what}s.` : `Its ${what}s: ${known.slice(0, LISTED).join(", ")}${more}`;
  return new Failure(`${environment} has no ${what} '${wanted}'${place}`, {
    exit: "usage",
    hint: nearest === null ? list : `Did you mean ${nearest}?\n${list}`,
  });
}
