import { isTable } from "../fields/containers.ts";
import { toFloat } from "../fields/scalars.ts";

export type JsonRewards =
  | { readonly ok: true; readonly rewards: Readonly<Record<string, number>> | null; readonly integers: readonly string[] }
  | { readonly ok: false; readonly error: "malformed" | "invalid"; readonly why: string };

/** A number of JSON that was written without a fraction: Python keeps ints and floats apart. */
class Integer {
  readonly value: number;

  constructor(value: number) {
    this.value = value;
  }
}

/** `reward.json`: an object of finite numbers. With `lenient`, other values are dropped. */
export function parseRewardJson(content: string, lenient = false): JsonRewards {
  const document = readJson(content);
  if (document === undefined) return { ok: false, error: "malformed", why: "it is not JSON" };
  if (!isTable(document) || document instanceof Integer) return { ok: false, error: "invalid", why: "it is not an object" };
  const rewards: [string, number][] = [];
  const integers: string[] = [];
  for (const [key, value] of Object.entries(document)) {
    const number = value instanceof Integer ? value.value : value;
    if (typeof number === "number" && Number.isFinite(number)) {
      rewards.push([key, number]);
      if (value instanceof Integer) integers.push(key);
    } else if (!lenient) return { ok: false, error: "invalid", why: `the value of '${key}' is not a finite number` };
  }
  return { ok: true, rewards: Object.fromEntries(rewards), integers };
}

/** As the reference reads it: with numbers in strings, booleans, `NaN` and `Infinity`, and null as no rewards. */
export function parseUpstreamRewardJson(content: string): JsonRewards {
  const document = readJson(withoutNames(content));
  if (document === undefined) return { ok: false, error: "malformed", why: "it is not JSON" };
  if (document === null) return { ok: true, rewards: null, integers: [] };
  if (!isTable(document) || document instanceof Integer) return { ok: false, error: "invalid", why: "it is not an object" };
  const rewards: [string, number][] = [];
  const integers: string[] = [];
  for (const [key, value] of Object.entries(document)) {
    const number = value instanceof Integer ? value.value : toFloat(nameOf(value) ?? value);
    if (number === null) return { ok: false, error: "invalid", why: `the value of '${key}' is not a number` };
    rewards.push([key, number]);
    if (value instanceof Integer) integers.push(key);
  }
  return { ok: true, rewards: Object.fromEntries(rewards), integers };
}

/** Undefined if the text is not JSON. */
function readJson(content: string): unknown {
  try {
    return JSON.parse(content, function (this: unknown, _, value, context?: { readonly source?: string }) {
      return typeof value === "number" && /^-?\d+$/.test(context?.source ?? "") ? new Integer(value) : value;
    });
  } catch {
    return undefined;
  }
}

/** Private characters around a name of Python's JSON; JSON.parse then reads it as a string. */
const MARK = "\uE000json:";

/** `NaN`, `Infinity` and `-Infinity` outside of strings as marked strings. */
function withoutNames(content: string): string {
  return content.replace(/"(?:[^"\\]|\\[\s\S])*"|-?Infinity|NaN/g, (token) => (token.startsWith('"') ? token : `"${MARK}${token}"`));
}

function nameOf(value: unknown): string | null {
  return typeof value === "string" && value.startsWith(MARK) ? value.slice(MARK.length) : null;
}
