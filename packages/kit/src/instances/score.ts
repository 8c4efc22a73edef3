import { isObject, PlatformError, type Reward } from "@aenv/contract";
import type { CompiledReward } from "../compile/environment.ts";

interface ScoredPart {
  readonly name: string;
  readonly weight: number;
  readonly score: number;
}

/** The result of a reward function as a number. Anything else is an error: it must not count as 0. */
export function toScore(value: unknown, name: string): number {
  const score = isObject(value) ? (value.reward ?? value.score) : value;
  if (typeof score === "boolean") return score ? 1 : 0;
  if (typeof score === "number" && Number.isFinite(score)) return score;
  const shown = typeof score === "string" ? JSON.stringify(score) : isObject(score) ? "an object" : String(score);
  throw new PlatformError(
    "reward.failed",
    `reward '${name}' returned ${shown}; it must return a finite number, a boolean, or an object with 'reward' or 'score'`,
  );
}

/** The weighted total of several rewards, which are scored one after the other. */
export async function totalOf(rewards: readonly CompiledReward[], score: (reward: CompiledReward) => Promise<unknown>): Promise<Reward> {
  const parts: ScoredPart[] = [];
  for (const one of rewards) {
    const { name } = one.definition;
    parts.push({ name, weight: one.weight, score: toScore(await score(one), name) });
  }
  return total(parts);
}

/** The weighted total of several rewards, and its components. */
export function total(parts: readonly ScoredPart[]): Reward {
  const components: Record<string, number> = {};
  const weights: Record<string, number> = {};
  let sum = 0;
  for (const part of parts) {
    components[part.name] = part.score;
    weights[part.name] = part.weight;
    sum += part.weight * part.score;
  }
  return { reward: sum, components, weights };
}
