import { isObject } from "@aenv/contract";
import type { PathCall, PathStep, RewardContext, RewardDefinition } from "../definition/definition.ts";
import { ownPath } from "./answer.ts";
import { isEqual } from "./json.ts";
import { type Given, Rubric, type RubricOptions, resolveGiven, shown } from "./rubric.ts";

/** A call to look for: a tool, some or all of its arguments, and how often. */
export interface WantedCall {
  readonly tool: string;
  /** Members that the arguments must have, with these values; a function decides itself. Any arguments, if not given. */
  readonly arguments?: Readonly<Record<string, unknown>> | ((given: Readonly<Record<string, unknown>>) => boolean);
  /** How often; at least once, if not given. */
  readonly times?: number | { readonly min?: number; readonly max?: number };
}

export interface PathTakenOptions<State> extends RubricOptions {
  /** Calls that must have succeeded, in any order. */
  readonly called?: Given<readonly (string | WantedCall)[], State>;
  /** Calls that must have succeeded in this order; others may be between them. */
  readonly order?: Given<readonly (string | WantedCall)[], State>;
  /** Calls that must not have been tried: one of them gives 0. */
  readonly never?: Given<readonly (string | WantedCall)[], State>;
  /** The most calls of any tool, failed ones too: one more gives 0. */
  readonly most?: number;
  /** `all`, the default, is 1 if everything holds; `share` is the share of the calls in `called` and `order` that were made. */
  readonly score?: "all" | "share";
}

/**
 * Checks which tools the agent called, with which arguments, in which order and how often. Words are no part of it.
 * Calls that failed count only where calls are forbidden or counted in total.
 *
 * @example
 * pathTaken({ name: "careful", called: [{ tool: "pay", times: 1 }], order: ["quote", "pay"], never: ["delete_account"], most: 20 })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function pathTaken<State = any>(options: PathTakenOptions<State>): RewardDefinition<State> {
  const rubric = new Rubric(pathTaken, options, ["called", "order", "never", "most", "score"]);
  const { called = [], order = [], never = [], most = Number.POSITIVE_INFINITY, score = "all" } = options;
  if (most !== Number.POSITIVE_INFINITY && !isCount(most)) throw rubric.invalid(`'most' is ${shown(most)}; it must be a whole number`);
  if (score !== "all" && score !== "share") throw rubric.invalid(`'score' is ${shown(score)}; it must be "all" or "share"`);
  const lists = { called, order, never };
  if (options.most === undefined && Object.values(lists).every((list) => typeof list !== "function" && list.length === 0))
    throw rubric.invalid("it checks nothing: give called, order, never or most");
  for (const [name, list] of Object.entries(lists)) {
    if (typeof list !== "function") readCalls(list, name, (problem) => rubric.invalid(problem));
  }
  const read = async (name: keyof typeof lists, context: RewardContext<State>) =>
    readCalls(await resolveGiven(lists[name], context), name, (problem) => rubric.failed(problem));
  return rubric.define(
    async (context) => {
      const [required, inOrder, forbidden] = [await read("called", context), await read("order", context), await read("never", context)];
      const wanted = required.length + inOrder.length;
      if (wanted + forbidden.length === 0 && options.most === undefined) throw rubric.failed("it checks nothing in this episode");
      const tried = ownPath(context).filter(isCall);
      if (tried.length > most || tried.some((call) => forbidden.some((one) => matches(call, one)))) return 0;
      const made = tried.filter(({ isError }) => !isError);
      const found = required.filter((one) => isMadeAsOften(made, one)).length + longestStart(made, inOrder);
      return found === wanted ? 1 : score === "share" ? found / wanted : 0;
    },
    { path: true },
  );
}

function isCall(step: PathStep): step is PathCall {
  return "tool" in step;
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

interface ReadCall {
  readonly tool: string;
  readonly accepts: (given: Readonly<Record<string, unknown>>) => boolean;
  readonly min: number;
  readonly max: number;
}

function readCalls(list: unknown, name: string, fail: (problem: string) => Error): readonly ReadCall[] {
  if (!Array.isArray(list)) throw fail(`'${name}' is ${shown(list)}; it must be a list of tools and calls`);
  return list.map((given: unknown) => {
    const one = typeof given === "string" ? { tool: given } : given;
    if (!isObject(one) || typeof one.tool !== "string" || one.tool === "")
      throw fail(`'${name}' has ${shown(given)}; each is the name of a tool, or { tool, arguments, times }`);
    const unknown = Object.keys(one).find((key) => key !== "tool" && key !== "arguments" && key !== "times");
    if (unknown !== undefined) throw fail(`'${name}' has a call with '${unknown}'; a call has tool, arguments and times`);
    if (one.times !== undefined && name !== "called") throw fail(`'${name}' has a call with 'times', which only 'called' has`);
    const { min, max } = timesOf(one.times, fail);
    return { tool: one.tool, accepts: argumentsOf(one.arguments, fail), min, max };
  });
}

function timesOf(times: unknown, fail: (problem: string) => Error): { readonly min: number; readonly max: number } {
  const { min, max } = isObject(times) ? times : { min: times, max: times };
  const read = { min: min ?? 1, max: max ?? Number.POSITIVE_INFINITY };
  const isValid = isCount(read.min) && (isCount(read.max) || read.max === Number.POSITIVE_INFINITY) && read.min <= read.max && read.max > 0;
  if (!isValid)
    throw fail(
      `'times' is ${shown(isObject(times) ? JSON.stringify(times) : times)}; it must be a whole number above 0, or { min, max } with min <= max; list what must not be called in 'never'`,
    );
  return read as { min: number; max: number };
}

function argumentsOf(wanted: unknown, fail: (problem: string) => Error): ReadCall["accepts"] {
  if (wanted === undefined) return () => true;
  if (typeof wanted === "function") return (given) => wanted(given) === true;
  if (!isObject(wanted)) throw fail(`'arguments' is ${shown(wanted)}; it must be an object or a function`);
  const entries = Object.entries(wanted);
  return (given) => entries.every(([key, value]) => Object.hasOwn(given, key) && isEqual(given[key], value, 0));
}

function matches(call: PathCall, { tool, accepts }: ReadCall): boolean {
  return call.tool === tool && accepts(call.arguments);
}

function isMadeAsOften(made: readonly PathCall[], wanted: ReadCall): boolean {
  const count = made.filter((call) => matches(call, wanted)).length;
  return count >= wanted.min && count <= wanted.max;
}

/** How many calls of the order, from its start, are in the path one after another. */
function longestStart(made: readonly PathCall[], order: readonly ReadCall[]): number {
  let found = 0;
  for (const call of made) {
    const next = order[found];
    if (next !== undefined && matches(call, next)) found++;
  }
  return found;
}
