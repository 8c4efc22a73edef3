import { isObject, parseBoundedJson } from "@aenv/contract";
import type { RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, answerReward } from "./answer.ts";
import { type Given, Rubric, shown } from "./rubric.ts";

export interface JsonAnswerOptions<State> extends AnswerOptions<State> {
  /** The expected value at each path, a JSON Pointer: `""` is the whole answer, `/items/0/id` a member. */
  readonly expected: Given<Readonly<Record<string, unknown>>, State>;
  /** The largest difference between two numbers that are equal; 0 by default. */
  readonly tolerance?: number;
  /** `all`, the default, is 1 if every path has its value; `share` is the share of the paths that have it. */
  readonly score?: "all" | "share";
}

/**
 * Reads the agent's answer as JSON, and compares the values at some paths with the expected ones. Objects are equal if they have equal
 * members in any order, lists if they have equal elements in the same order. Numbers are those of JavaScript, with 15 exact digits.
 * An answer that is not JSON scores 0.
 *
 * @example
 * jsonAnswer({ name: "order", expected: { "/status": "sent", "/items/0/count": 2 } })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function jsonAnswer<State = any>(options: JsonAnswerOptions<State>): RewardDefinition<State> {
  const rubric = new Rubric(jsonAnswer, options, [...ANSWER_OPTIONS, "expected", "tolerance", "score"]);
  const { expected, tolerance = 0, score = "all" } = options;
  if (typeof tolerance !== "number" || !(tolerance >= 0 && tolerance < Number.POSITIVE_INFINITY))
    throw rubric.invalid(`'tolerance' is ${shown(tolerance)}; it must be a number of at least 0`);
  if (score !== "all" && score !== "share") throw rubric.invalid(`'score' is ${shown(score)}; it must be "all" or "share"`);
  return answerReward(rubric, {
    expected,
    read: (value, fail) => {
      const entries = isObject(value) ? Object.entries(value) : [];
      if (entries.length === 0) throw fail(`'expected' is ${shown(value)}; it must be an object with a value for each path`);
      return entries.map(([path, wanted]) => {
        if (path !== "" && !/^(?:\/(?:[^~/]|~[01])*)+$/u.test(path))
          throw fail(`'${path}' is no JSON Pointer; one is empty or begins with '/'`);
        if (wanted === undefined) throw fail(`the expected value at '${path}' is undefined`);
        return { keys: path.split("/").slice(1).map(unescapeKey), wanted };
      });
    },
    check: (answer, paths) => {
      const value = parse(answer);
      if (value === undefined) return 0;
      const right = paths.filter(({ keys, wanted }) => isEqual(at(value, keys), wanted, tolerance)).length;
      return score === "share" ? right / paths.length : right === paths.length ? 1 : 0;
    },
  });
}

function unescapeKey(key: string): string {
  return key.replaceAll("~1", "/").replaceAll("~0", "~");
}

/** The value of a text that is JSON, also inside one code fence; undefined if it is none. */
function parse(text: string): unknown {
  const fenced = /^```(?:json)?\r?\n([\s\S]*?)\r?\n?```$/i.exec(text.trim());
  try {
    return parseBoundedJson(fenced?.[1] ?? text);
  } catch {
    return undefined;
  }
}

function at(value: unknown, keys: readonly string[]): unknown {
  let found = value;
  for (const key of keys) {
    if (Array.isArray(found)) found = /^(?:0|[1-9]\d*)$/.test(key) ? found[Number(key)] : undefined;
    else if (isObject(found) && Object.hasOwn(found, key)) found = found[key];
    else return undefined;
  }
  return found;
}

/** Whether two values are the same JSON. */
export function isEqual(one: unknown, other: unknown, tolerance: number): boolean {
  if (typeof one === "number" && typeof other === "number") return one === other || Math.abs(one - other) <= tolerance;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((element, index) => isEqual(element, other[index], tolerance));
  }
  if (!isObject(one) || !isObject(other)) return one === other;
  const keys = Object.keys(one);
  return (
    keys.length === Object.keys(other).length && keys.every((key) => Object.hasOwn(other, key) && isEqual(one[key], other[key], tolerance))
  );
}
