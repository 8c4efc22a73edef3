import * as z from "zod";

/** One problem of an environment. Only the trainer sees it whole; what the agent may know is `instruction`. */
export const task = z.looseObject({
  id: z.string().min(1),
  instruction: z.string().optional(),
  split: z.string().optional(),
  /** For tasks of several splits: all of them. */
  splits: z.array(z.string()).optional(),
});
export type Task = z.infer<typeof task>;

export const taskPage = z.object({
  items: z.array(task),
  total: z.number().int().nonnegative(),
});
export type TaskPage = z.infer<typeof taskPage>;
