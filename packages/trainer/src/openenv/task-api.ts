import { PlatformError } from "@aenv/contract";
import * as z from "zod";
import type { TaskList } from "../sessions/task-list.ts";
import { parse } from "./messages.ts";

const bySplit = z.looseObject({ split: z.string() });
const byIndex = z.looseObject({ split: z.string(), index: z.number().int() });
const byRange = z.looseObject({ split: z.string(), start: z.number().int().nullish(), stop: z.number().int().nullish() });

export const taskRoutes = ["splits", "tasks", "num_tasks", "task", "task_range"] as const;
export type TaskRoute = (typeof taskRoutes)[number];

/** OpenEnv's routes to discover tasks. */
export function answerTasks(route: TaskRoute, body: unknown, list: TaskList, name: string): unknown {
  if (list.of().length === 0) throw new PlatformError("instance.unsupported", `'${name}' has no tasks`);
  switch (route) {
    case "splits":
      return splitsOf(list).map((split) => ({ name: split, type: split === "train" || split === "test" ? split : "validation" }));
    case "tasks":
      return { tasks: tasksOf(list, parse(bySplit, body).split), env_name: name };
    case "num_tasks":
      return { num_tasks: tasksOf(list, parse(bySplit, body).split).length };
    case "task": {
      const { split, index } = parse(byIndex, body);
      const tasks = tasksOf(list, split);
      const task = tasks[index];
      if (task !== undefined) return { task };
      throw new PlatformError("request.invalid", `index is ${index}; split '${split}' has ${tasks.length} tasks, counted from 0`);
    }
    case "task_range": {
      const { split, start, stop } = parse(byRange, body);
      return { tasks: tasksOf(list, split).slice(start ?? 0, stop ?? undefined) };
    }
  }
}

/** The name of the one split of an environment whose tasks have none. */
const ALL = "all";

function splitsOf(list: TaskList): readonly string[] {
  return list.splits.length === 0 ? [ALL] : list.splits;
}

function tasksOf(list: TaskList, split: string) {
  return list.of(list.splits.length === 0 && split === ALL ? undefined : split);
}
