import type { RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, type AnswerPlace, answerReward } from "./answer.ts";
import { isWithin, parseRational, type Rational } from "./decimal.ts";
import { type Given, Rubric, type RubricOptions, shown } from "./rubric.ts";

/** An absolute tolerance, or also one relative to the expected number; the larger one counts. */
export type Tolerance = number | { readonly absolute?: number; readonly relative?: number };

export interface NumericAnswerOptions<State> extends Omit<AnswerOptions<State>, "from"> {
  /** A text keeps digits that a number cannot have. */
  readonly expected: Given<number | bigint | string, State>;
  /** 0 by default. */
  readonly tolerance?: Tolerance;
  /** Units that may stand before or after the number, such as `km` or `$`. The answer needs none. */
  readonly units?: readonly string[];
  /** As for every answer, or `last`: the last number in the last 1,000 characters of what the agent wrote. */
  readonly from?: AnswerPlace | "last";
}

const SEARCHED = 1_000;

/**
 * 1 if the agent's answer is the expected number, within the tolerance, else 0. Numbers are compared exactly, not as floating point.
 *
 * @example
 * numericAnswer({ name: "distance", expected: 384_400, tolerance: { relative: 0.01 }, units: ["km"], from: { after: "ANSWER:" } })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function numericAnswer<State = any>(options: NumericAnswerOptions<State>): RewardDefinition<State> {
  const { expected, tolerance = 0, units = [], from = "all" } = options;
  const rubric = new Rubric(numericAnswer, options, [...ANSWER_OPTIONS, "expected", "tolerance", "units"]);
  const { absolute, relative } = tolerances(rubric, tolerance);
  if (!Array.isArray(units) || units.some((unit) => typeof unit !== "string" || unit.trim() === "" || /\d/.test(unit)))
    throw rubric.invalid("'units' must be a list of texts without digits, none of them empty");
  return answerReward(rubric, {
    expected,
    find: from === "last" ? lastNumber : undefined,
    read: (value, fail) => {
      const isNumber = typeof value === "number" || typeof value === "bigint" || typeof value === "string";
      const number = isNumber ? parseRational(String(value)) : null;
      if (number === null) throw fail(`'expected' is ${shown(value)}; it must be a finite number, or a text that is one`);
      return number;
    },
    check: (answer, wanted) => {
      const number = parseRational(withoutUnit(answer.trim(), units));
      return number !== null && isWithin(number, wanted, absolute, relative) ? 1 : 0;
    },
  });
}

function tolerances(rubric: Rubric<RubricOptions>, tolerance: unknown): { readonly absolute: Rational; readonly relative: Rational } {
  const parts = typeof tolerance === "object" && tolerance !== null ? tolerance : { absolute: tolerance };
  const unknown = Object.keys(parts).find((key) => key !== "absolute" && key !== "relative");
  if (unknown !== undefined) throw rubric.invalid(`'tolerance' has '${unknown}'; it has absolute and relative`);
  const { absolute = 0, relative = 0 } = parts as { readonly absolute?: unknown; readonly relative?: unknown };
  const read = (value: unknown) => {
    const number = typeof value === "number" && value >= 0 ? parseRational(String(value)) : null;
    if (number === null) throw rubric.invalid(`'tolerance' is ${shown(value)}; it must be a number of at least 0`);
    return number;
  };
  return { absolute: read(absolute), relative: read(relative) };
}

function withoutUnit(text: string, units: readonly string[]): string {
  for (const unit of units) {
    if (text.endsWith(unit)) return text.slice(0, -unit.length).trimEnd();
    if (text.startsWith(unit)) return text.slice(unit.length).trimStart();
    // The sign stands before the unit: -$5.
    if (/^[+\u2212-]/.test(text) && text.startsWith(unit, 1)) return text.slice(0, 1) + text.slice(1 + unit.length).trimStart();
  }
  return text;
}

/** The last number or fraction in the end of a text. The search is bounded, since it takes quadratic time for some texts. */
function lastNumber(text: string): string | null {
  const found = text
    .slice(-SEARCHED)
    .match(/(?:(?<![\w.])[+\u2212-])?(?<![\w.])(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:e[+-]?\d{1,4})?(?:\/\d+)?(?!\w)/giu);
  return found?.at(-1)?.replace(/,$/, "") ?? null;
}
