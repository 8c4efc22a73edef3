import type { RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, answerReward } from "./answer.ts";
import { type Given, Rubric, shown } from "./rubric.ts";

const IGNORABLE = ["case", "spaces", "punctuation", "accents"] as const;

/** A difference that does not count. */
export type Ignorable = (typeof IGNORABLE)[number];

export interface ExactAnswerOptions<State> extends AnswerOptions<State> {
  /** The right answer, or several. */
  readonly expected: Given<string | readonly string[], State>;
  /** Differences that do not count; those of white space around the answer never do. */
  readonly ignore?: readonly Ignorable[];
}

/**
 * 1 if the agent's answer is the expected text, else 0. The whole answer is compared, never a part of it.
 *
 * @example
 * exactAnswer({ name: "capital", expected: ({ task }) => String(task?.capital), ignore: ["case", "accents"] })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function exactAnswer<State = any>(options: ExactAnswerOptions<State>): RewardDefinition<State> {
  const rubric = new Rubric(exactAnswer, options, [...ANSWER_OPTIONS, "expected", "ignore"]);
  const { expected, ignore = [] } = options;
  const wrong = ignore.find((one) => !IGNORABLE.includes(one));
  if (wrong !== undefined) throw rubric.invalid(`'ignore' has ${shown(wrong)}; it is a list of ${IGNORABLE.join(", ")}`);
  return answerReward(rubric, {
    expected,
    read: (value, fail) => {
      const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
      if (texts.length === 0) throw fail("'expected' is an empty list; it needs a text");
      return new Set(
        texts.map((text) => {
          if (typeof text === "string" && !isInvisible(normalise(text, ignore))) return normalise(text, ignore);
          throw fail(`'expected' is ${shown(text)}; it must be a text that has a character which counts, or a list of such texts`);
        }),
      );
    },
    check: (answer, texts) => (texts.has(normalise(answer, ignore)) ? 1 : 0),
  });
}

/** A text without the differences that do not count. Composed and decomposed characters are always the same. */
export function normalise(text: string, ignore: readonly Ignorable[]): string {
  let form = text;
  if (ignore.includes("accents")) form = form.normalize("NFD").replace(/\p{M}+/gu, "");
  // In both steps, so that ß is SS.
  if (ignore.includes("case")) form = form.toUpperCase().toLowerCase();
  if (ignore.includes("punctuation")) form = form.replace(/\p{P}+/gu, "");
  if (ignore.includes("spaces")) form = form.replace(/\s+/gu, " ");
  return form.normalize("NFC").trim();
}

function isInvisible(text: string): boolean {
  return text.replace(/[\p{Default_Ignorable_Code_Point}\s]+/gu, "") === "";
}
