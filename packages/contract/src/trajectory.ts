import * as z from "zod";
import { outcome } from "./outcome.ts";
import { callToolResult } from "./tool.ts";

/** One tool call of an episode and what came back. */
export const step = z.object({
  index: z.number().int().nonnegative(),
  tool: z.string(),
  arguments: z.record(z.string(), z.unknown()),
  result: callToolResult,
  startedAt: z.iso.datetime(),
  durationMs: z.number().nonnegative(),
});
export type Step = z.infer<typeof step>;

/** What an agent did in one episode, and how it ended. */
export const trajectory = z.object({
  environment: z.string(),
  instanceId: z.string(),
  taskId: z.string().nullable(),
  seed: z.number().int().nullable(),
  steps: z.array(step),
  outcome,
});
export type Trajectory = z.infer<typeof trajectory>;
