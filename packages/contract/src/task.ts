import * as z from "zod";
import type { Json } from "./json.ts";

/** A task of an environment. Only the trainer API returns all of it; the agent gets `instruction`. */
export const task = z.looseObject({
  id: z.string().min(1),
  instruction: z.string().optional(),
  split: z.string().optional(),
  /** All splits of a task that belongs to several. */
  splits: z.array(z.string()).optional(),
});
export type Task = z.infer<typeof task>;

/** A task that a trainer makes up, for environments that take such tasks. */
export const inlineTask = z.record(z.string(), z.unknown() as z.ZodType<Json>);

export const taskPage = z.object({
  items: z.array(task),
  total: z.number().int().nonnegative(),
});
export type TaskPage = z.infer<typeof taskPage>;
