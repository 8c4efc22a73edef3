import { type JsonObject, PlatformError, type TaskChoice } from "@aenv/contract";
import type { TaskList } from "../sessions/task-list.ts";
import type { ResetData } from "./messages.ts";

/**
 * The task of an episode; null if the environment has none. Equal seeds choose equal tasks: trainers give the members of a group the
 * same seed. Without any choice it is the next task in order; `episodes` counts those before.
 */
export function chooseTask(list: TaskList, data: ResetData, episodes: number): TaskChoice | null {
  if (typeof data.task === "object" && data.task !== null) return inlineOrListed(data.task);
  const named = data.task ?? data.task_id;
  if (named != null) return { id: named };
  const split = data.split ?? defaultSplit(list);
  const tasks = list.of(split);
  const { index } = data;
  if (index == null && tasks.length === 0) return null;
  const task = tasks[index ?? (data.seed ?? episodes) % tasks.length];
  if (task !== undefined) return { id: task.id };
  throw new PlatformError(
    "task.not_found",
    `there is no task ${index}${split === undefined ? "" : ` in split '${split}'`}: there are ${tasks.length}, counted from 0`,
  );
}

/** The tasks to train on, where the environment says which. */
function defaultSplit(list: TaskList): string | undefined {
  return list.splits.includes("train") ? "train" : undefined;
}

/** An object with nothing but an id names a listed task. */
function inlineOrListed(task: JsonObject): TaskChoice {
  const { id, ...more } = task;
  return typeof id === "string" && Object.keys(more).length === 0 ? { id } : { inline: task };
}
