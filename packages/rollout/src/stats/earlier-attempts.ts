import type { EarlierAttempts, Trajectory, Usage } from "@aenv/contract";

/** What an attempt used. */
export type Spent = Pick<Trajectory, "usage" | "cost">;
type SpentInAll = Spent & Pick<Trajectory, "earlier_attempts">;

/** The trajectory of an attempt, with what the attempts before it used: they were paid for, and only the last one is kept. */
export function withEarlierAttempts<T extends object>(last: T, earlier: readonly Spent[]): T {
  if (earlier.length === 0) return last;
  const known = earlier.flatMap(({ cost }) => (cost === null ? [] : [cost]));
  const attempts: EarlierAttempts = {
    attempts: earlier.length,
    usage: earlier.map(({ usage }) => usage).reduce(sumOf),
    cost: known.length === 0 ? null : known.reduce((sum, cost) => sum + cost, 0),
  };
  return { ...last, earlier_attempts: attempts };
}

/** What an episode cost with all its attempts; null where no cost is known. */
export function costOfAttempts({ cost, earlier_attempts: earlier }: SpentInAll): number | null {
  if (earlier === undefined || earlier.cost === null) return cost;
  return earlier.cost + (cost ?? 0);
}

/** The tokens that the model read and wrote in all attempts of an episode, as far as its endpoint counted them. */
export function tokensOfAttempts({ usage, earlier_attempts: earlier }: SpentInAll): number {
  const count = (one: Usage | undefined) => (one?.prompt_tokens ?? 0) + (one?.completion_tokens ?? 0);
  return count(usage) + count(earlier?.usage);
}

function sumOf(one: Usage, other: Usage): Usage {
  const reasoning = (one.reasoning_tokens ?? 0) + (other.reasoning_tokens ?? 0);
  return {
    prompt_tokens: sumOfKnown(one.prompt_tokens, other.prompt_tokens),
    completion_tokens: sumOfKnown(one.completion_tokens, other.completion_tokens),
    cached_tokens: one.cached_tokens + other.cached_tokens,
    ...(reasoning > 0 && { reasoning_tokens: reasoning }),
  };
}

/** Unknown if one of them is: the sum of the others would look like a small number. */
function sumOfKnown(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}
