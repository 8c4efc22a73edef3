import type { RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, answerReward } from "./answer.ts";
import { normalise } from "./exact.ts";
import { type Given, Rubric, type RubricOptions, shown } from "./rubric.ts";

export interface ChoiceAnswerOptions<State> extends AnswerOptions<State> {
  /** The labels, or the labels with the texts that they stand for: `{ A: "Oslo", B: "Bergen" }`. */
  readonly choices: readonly string[] | Readonly<Record<string, string>>;
  /** The label of the right choice. */
  readonly expected: Given<string, State>;
}

interface Choice {
  readonly label: string;
  readonly text: string | null;
}

/**
 * 1 if the agent chose the expected label, else 0. The choice is the whole answer, such as `B`, `(b)`, `B. Bergen` or `Bergen`, or it is
 * stated, as in "the answer is B". An answer that states several choices is none.
 *
 * @example
 * choiceAnswer({ name: "choice", choices: ["A", "B", "C", "D"], expected: ({ task }) => String(task?.right) })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function choiceAnswer<State = any>(options: ChoiceAnswerOptions<State>): RewardDefinition<State> {
  const rubric = new Rubric(choiceAnswer, options, [...ANSWER_OPTIONS, "choices", "expected"]);
  const choices = choicesOf(rubric, options.choices);
  return answerReward(rubric, {
    expected: options.expected,
    read: (value, fail) => {
      const found = choices.find(({ label }) => label === value);
      if (found === undefined)
        throw fail(`'expected' is ${shown(value)}; it must be one of ${choices.map(({ label }) => label).join(", ")}`);
      return found;
    },
    check: (answer, { label }) => (chosen(answer, choices) === label ? 1 : 0),
  });
}

function choicesOf(rubric: Rubric<RubricOptions>, given: unknown): readonly Choice[] {
  const isRecord = typeof given === "object" && given !== null && !Array.isArray(given);
  const choices: readonly Choice[] = isRecord
    ? Object.entries(given).map(([label, text]) => ({ label, text: String(text) }))
    : (Array.isArray(given) ? given : []).map((label) => ({ label: String(label), text: null }));
  if (choices.length < 2) throw rubric.invalid("'choices' must be a list of two or more labels, or an object with their texts");
  const bad = choices.find(({ label }) => !/^[\p{L}\p{N}]{1,20}$/u.test(label));
  if (bad !== undefined) throw rubric.invalid(`'choices' has the label ${shown(bad.label)}; a label has 1 to 20 letters and digits`);
  const names = choices.flatMap(({ label, text }) =>
    text === null || plain(text) === plain(label) ? [plain(label)] : [plain(label), plain(text)],
  );
  const twice = names.find((name, at) => name === "" || names.indexOf(name) !== at);
  if (twice !== undefined) throw rubric.invalid(`'choices' has ${shown(twice)} for two choices, or an empty text`);
  return choices;
}

/** The label that an answer chooses; null if it chooses none or several. */
export function chosen(answer: string, choices: readonly Choice[]): string | null {
  return wholeChoice(answer, choices) ?? statedChoice(answer, choices);
}

/** `B`, `(B)`, `**B**`, `B.`, `B) Bergen`, or `Bergen`. */
function wholeChoice(answer: string, choices: readonly Choice[]): string | null {
  const text = plain(answer);
  for (const { label, text: own } of choices) {
    const [short, long] = [plain(label), own === null ? null : plain(own)];
    if (text === short || text === long) return label;
    if (long === null || !text.startsWith(short) || !text.endsWith(long)) continue;
    if (/^[).:\-\s]{1,4}$/.test(text.slice(short.length, text.length - long.length))) return label;
  }
  return null;
}

// All repetitions are bounded: the time is proportional to the length of the answer.
const STATEMENT = /\banswer(?:\s{1,3}is)?\s{0,3}[:=]?[*_("'[{\s]{0,8}([\p{L}\p{N}]{1,20})(?![\p{L}\p{N}])/giu;
const NEXT =
  /^[*_)"'\]}]{0,8}\s{0,3}(?:,|\/|&|\bor\b|\band\b|\+|\|)?\s{0,3}(?:or\b|and\b)?\s{0,3}[*_("'[{]{0,8}([\p{L}\p{N}]{1,20})(?![\p{L}\p{N}])/iu;
const LONGEST_NEXT = 80;

/** A label that is stated, with its own upper and lower case: "the answer is a city" chooses nothing. */
function statedChoice(answer: string, choices: readonly Choice[]): string | null {
  const stated = new Set<string>();
  for (const match of answer.matchAll(STATEMENT)) {
    const found = choices.find(({ label }) => label === match[1]);
    if (found === undefined) continue;
    // A list goes on: "B or C", "B, C", "B/C", "B C".
    const end = match.index + match[0].length;
    const next = NEXT.exec(answer.slice(end, end + LONGEST_NEXT))?.[1];
    if (choices.some(({ label }) => label === next && label !== found.label)) return null;
    stated.add(found.label);
  }
  const [only] = stated;
  return stated.size === 1 && only !== undefined ? only : null;
}

const AROUND_START = new Set("*_(\"'[{`");
const AROUND_END = new Set("*_)\"']}`.:");

/** A text without what people put around a label. */
function plain(text: string): string {
  const trimmed = normalise(text, ["case", "spaces"]);
  let [from, to] = [0, trimmed.length];
  while (from < to && AROUND_START.has(trimmed.charAt(from))) from++;
  while (to > from && AROUND_END.has(trimmed.charAt(to - 1))) to--;
  return trimmed.slice(from, to).trim();
}
