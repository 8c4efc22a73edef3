import { PyError } from "@aenv/benchmark";
import { isTable } from "../fields/containers.ts";
import { readJson } from "../python/json.ts";

export type JsonRewards =
  | { readonly ok: true; readonly rewards: Readonly<Record<string, number>>; readonly integers: readonly string[] }
  | { readonly ok: false; readonly why: string };

/** `reward.json`: an object of finite numbers. With `lenient`, other values are dropped. */
export function parseRewardJson(content: string, lenient = false): JsonRewards {
  const document = tryJson(content);
  if (document === undefined) return { ok: false, why: "it is not JSON" };
  if (!isTable(document)) return { ok: false, why: "it is not an object" };
  const rewards: [string, number][] = [];
  const integers: string[] = [];
  for (const [key, value] of Object.entries(document)) {
    const number = typeof value === "bigint" ? Number(value) : value;
    if (typeof number === "number" && Number.isFinite(number)) {
      rewards.push([key, number]);
      if (typeof value === "bigint") integers.push(key);
    } else if (!lenient) return { ok: false, why: `the value of '${key}' is not a finite number` };
  }
  return { ok: true, rewards: Object.fromEntries(rewards), integers };
}

/** Undefined if the text is not JSON, or is nested too deeply. */
function tryJson(content: string): unknown {
  try {
    return readJson(content);
  } catch (error) {
    if (error instanceof PyError || error instanceof RangeError) return undefined;
    throw error;
  }
}
