import type { Trajectory, Turn } from "@aenv/contract";

/** The tokens of the turns together. */
export function usageOf(turns: readonly Turn[]): Trajectory["usage"] {
  const sum = (value: (turn: Turn) => number | null | undefined) => turns.reduce((total, turn) => total + (value(turn) ?? 0), 0);
  const sumOfAll = (value: (turn: Turn) => number | null) => (turns.some((turn) => value(turn) === null) ? null : sum(value));
  const reasoning = sum((turn) => turn.reasoning_tokens);
  return {
    prompt_tokens: sumOfAll((turn) => turn.prompt_tokens),
    completion_tokens: sumOfAll((turn) => turn.completion_tokens),
    cached_tokens: sum((turn) => turn.cached_tokens),
    ...(reasoning > 0 && { reasoning_tokens: reasoning }),
  };
}

/** What all of the turns hold. */
export function captureOf(turns: readonly Turn[]): Trajectory["capture"] {
  if (turns.length === 0) return "text";
  if (turns.every(({ prompt_token_ids, completion_token_ids, logprobs }) => prompt_token_ids && completion_token_ids && logprobs))
    return "tokens";
  return turns.every(({ logprobs }) => logprobs !== null) ? "logprobs" : "text";
}
