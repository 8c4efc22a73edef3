import type { Turn } from "@aenv/contract";
import * as z from "zod";

const price = z.number().nonnegative();

/** What one million tokens of a model cost. Reasoning tokens are output, as the endpoints count them. */
export const prices = z.strictObject({
  input: price,
  output: price,
  /** Price of input that the endpoint had cached; the price of input if absent. */
  cached: price.optional(),
});
export type Prices = z.infer<typeof prices>;

const MILLION = 1_000_000;

/** The cost of a model's turns; null if one of them has no usage, because a part of a cost is no cost. */
export function costOfTurns(turns: readonly Turn[], { input, output, cached = input }: Prices): number | null {
  let cost = 0;
  for (const { prompt_tokens, completion_tokens, cached_tokens } of turns) {
    if (prompt_tokens === null || completion_tokens === null) return null;
    const read = Math.min(cached_tokens ?? 0, prompt_tokens);
    cost += ((prompt_tokens - read) * input + read * cached + completion_tokens * output) / MILLION;
  }
  return cost;
}
