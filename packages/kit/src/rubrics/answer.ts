import { isObject } from "@aenv/contract";
import type { PathStep, RewardContext, RewardDefinition } from "../definition/definition.ts";
import { type Given, type Rubric, type RubricOptions, resolveGiven, shown } from "./rubric.ts";

/**
 * Where the answer is in what the agent wrote: all of it; the rest of the line after the last marker; the text of the last
 * `<tag>…</tag>`; or the content of the last `\boxed{…}`. Each place holds one answer, so a list of guesses is not searched for the right one.
 */
export type AnswerPlace = "all" | "boxed" | { readonly after: string } | { readonly tag: string };

export interface AnswerOptions<State> extends RubricOptions {
  /** The agent's answer; what it said last, if not given. Null or undefined mean that there is none, which scores 0. Data becomes JSON. */
  readonly answer?: (context: RewardContext<State>) => Answer | Promise<Answer>;
  /** `all` by default. */
  readonly from?: AnswerPlace;
}

export type Answer = string | number | bigint | boolean | object | null | undefined;

export const ANSWER_OPTIONS = ["answer", "from"] as const;

/** A longer text is not an answer. */
const MAX_CHARACTERS = 1_000_000;

/** How one kind of reward reads its expected value and compares an answer with it. */
export interface AnswerCheck<State, Expected> {
  readonly expected: Given<unknown, State>;
  /** Makes of the expected value what `check` gets; throws what `fail` makes of a problem. */
  readonly read: (value: unknown, fail: (problem: string) => Error) => Expected;
  readonly check: (answer: string, expected: Expected) => unknown;
  /** Finds the answer in what the agent wrote, instead of `from`. */
  readonly find?: ((text: string) => string | null) | undefined;
}

/** Defines a reward for an answer. The expected value is read first, so that a task without one fails for every answer. */
export function answerReward<State, Expected>(
  rubric: Rubric<Omit<AnswerOptions<State>, "from"> & { readonly from?: unknown }>,
  { expected, read, check, find: findOwn }: AnswerCheck<State, Expected>,
): RewardDefinition<State> {
  const { answer, from = "all" } = rubric.options;
  const search = findOwn ?? placeOf(rubric, from);
  if (typeof expected !== "function") read(expected, (problem) => rubric.invalid(problem));
  const score = async (context: RewardContext<State>) => {
    const wanted = read(await resolveGiven(expected, context), (problem) => rubric.failed(problem));
    const given = answer === undefined ? lastWords(ownPath(context)) : await answer(context);
    const text = asText(rubric, given);
    if (text === null || text.length > MAX_CHARACTERS) return 0;
    const found = search(text);
    return found === null || found.trim() === "" ? 0 : check(found, wanted);
  };
  return rubric.define(score, answer === undefined ? { path: true } : {});
}

/** What the agent of the reward's role has done; the whole path without roles, and for a reward of all roles. */
export function ownPath<State>({ path, role }: RewardContext<State>): readonly PathStep[] {
  return role === null || role === undefined ? path : path.filter((step) => step.role === role);
}

/** What the agent said last; null if it said nothing. */
export function lastWords(path: readonly PathStep[]): string | null {
  const words = path.findLast((step) => "say" in step);
  return words === undefined ? null : words.say;
}

function asText(rubric: Rubric<RubricOptions>, answer: unknown): string | null {
  if (answer === null || answer === undefined) return null;
  if (typeof answer === "string") return answer;
  if (typeof answer === "number" || typeof answer === "bigint" || typeof answer === "boolean") return String(answer);
  // The agent may decide what the state holds, so another kind of value is an answer too.
  if (typeof answer === "object") return JSON.stringify(answer);
  throw rubric.failed(`'answer' returned ${shown(answer)}; it must return a text, a number, a boolean, plain data, or null`);
}

function placeOf(rubric: Rubric<RubricOptions>, from: unknown): (text: string) => string | null {
  if (!isPlace(from)) throw rubric.invalid(`'from' is ${shown(from)}; it must be "all", "boxed", { after: "TEXT" } or { tag: "NAME" }`);
  return (text) => find(text, from);
}

function isPlace(from: unknown): from is AnswerPlace {
  if (from === "all" || from === "boxed") return true;
  if (!isObject(from) || Object.keys(from).length !== 1) return false;
  const { after, tag } = from;
  return (typeof after === "string" && after.trim() !== "") || (typeof tag === "string" && /^[A-Za-z][\w-]*$/.test(tag));
}

/** The part of a text that is the answer; null if there is none. */
export function find(text: string, from: AnswerPlace): string | null {
  if (from === "all") return text;
  if (from === "boxed") return lastBoxed(text);
  if ("tag" in from) return lastTagged(text, from.tag);
  const at = text.lastIndexOf(from.after);
  if (at < 0) return null;
  const [line = ""] = text.slice(at + from.after.length).split("\n", 1);
  return line;
}

function lastTagged(text: string, tag: string): string | null {
  const end = text.lastIndexOf(`</${tag}>`);
  if (end < 0) return null;
  const open = `<${tag}>`;
  const start = text.lastIndexOf(open, end);
  return start < 0 ? null : text.slice(start + open.length, end);
}

function lastBoxed(text: string): string | null {
  const open = "\\boxed{";
  const start = text.lastIndexOf(open);
  if (start < 0) return null;
  let depth = 1;
  for (let at = start + open.length; at < text.length; at++) {
    if (text[at] === "{") depth++;
    if (text[at] === "}" && --depth === 0) return text.slice(start + open.length, at);
  }
  return null;
}
