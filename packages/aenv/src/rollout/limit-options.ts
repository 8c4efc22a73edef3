import type { Limits } from "@aenv/rollout";
import type { Command } from "commander";
import { duration, integer } from "../options/values.ts";

/** The limits of an episode. What the agent has done until then is scored. */
export interface LimitOptions {
  readonly turns?: number;
  readonly toolCalls?: number;
  readonly maxTokens?: number;
  readonly timeLimit?: number;
}

const MOST = Number.MAX_SAFE_INTEGER;

export function addLimitOptions(command: Command): Command {
  return command
    .option("--turns <number>", "turns of the agent in an episode at most", integer(1, MOST))
    .option("--tool-calls <number>", "tool calls in an episode at most", integer(1, MOST))
    .option("--max-tokens <number>", "tokens that the model may write in an episode", integer(1, MOST))
    .option("--time-limit <duration>", "how long the agent may play an episode", duration);
}

export function limitsOf({ turns, toolCalls, maxTokens: tokens, timeLimit }: LimitOptions): Limits {
  return {
    ...(turns !== undefined && { turns }),
    ...(toolCalls !== undefined && { toolCalls }),
    ...(tokens !== undefined && { tokens }),
    ...(timeLimit !== undefined && { seconds: timeLimit / 1_000 }),
  };
}
