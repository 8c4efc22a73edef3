import { isObject, PlatformError, type Reward } from "@aenv/contract";

/** One reward function's answer as a number; what is none is an error, because a 0 made of it would be a lie. */
export function toScore(value: unknown, name: string): number {
  const score = isObject(value) ? (value.reward ?? value.score) : value;
  if (typeof score === "boolean") return score ? 1 : 0;
  if (typeof score === "number" && Number.isFinite(score)) return score;
  const shown = typeof score === "string" ? JSON.stringify(score) : isObject(score) ? "an object" : String(score);
  throw new PlatformError(
    "reward.failed",
    `reward '${name}' gave ${shown}; it must give a finite number, a boolean, or an object with 'reward' or 'score'`,
  );
}

/** The weighted total of several rewards, and what it is made of. */
export function total(parts: readonly { readonly name: string; readonly weight: number; readonly score: number }[]): Reward {
  const components: Record<string, number> = {};
  let sum = 0;
  for (const part of parts) {
    components[part.name] = part.score;
    sum += part.weight * part.score;
  }
  return { reward: sum, components };
}
