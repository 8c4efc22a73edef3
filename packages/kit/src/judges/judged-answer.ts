import type { RewardContext, RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, answerReward } from "../rubrics/answer.ts";
import { type Given, Rubric, resolveGiven, shown } from "../rubrics/rubric.ts";
import { type Judge, type ModelJudgeOptions, modelJudge } from "./judge.ts";

export interface JudgedAnswerOptions<State> extends AnswerOptions<State> {
  /** The name of a model in `deployConfig.models`, or a judge, such as one that is a child. */
  readonly judge: string | ((context: RewardContext<State>) => Judge);
  readonly question: Given<string, State>;
  readonly rubric: Given<string, State>;
  readonly reference?: Given<string, State>;
  /** The score of each verdict; `{ pass: 1, fail: 0 }` by default. */
  readonly verdicts?: Readonly<Record<string, number>>;
  /** The score is what the model gives within this range, instead of that of its verdict. */
  readonly range?: { readonly min: number; readonly max: number };
  /** How the model is asked. */
  readonly asking?: Pick<ModelJudgeOptions, "temperature" | "maxTokens" | "seed">;
}

/** A longer answer is none: a flood of words must not decide by filling the model's context. */
const MAX_CHARACTERS = 100_000;

/**
 * The score that a model gives to the agent's answer, by a rubric. No answer scores 0 and asks no model. If the model fails, or gives no
 * valid verdict, there is no score: the error is `model.failed`.
 *
 * @example
 * judgedAnswer({ name: "helpful", judge: "judge", question: ({ task }) => String(task?.instruction), rubric: "It names a concrete step." })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function judgedAnswer<State = any>(options: JudgedAnswerOptions<State>): RewardDefinition<State> {
  const own = ["judge", "question", "rubric", "reference", "verdicts", "range", "asking"];
  const rubric = new Rubric(judgedAnswer, options, [...ANSWER_OPTIONS, ...own]);
  const { judge, verdicts = { pass: 1, fail: 0 }, range, asking = {} } = options;
  const scores = Object.entries(verdicts);
  if (scores.length < 2 || !scores.every(([, score]) => Number.isFinite(score)))
    throw rubric.invalid("'verdicts' must have a finite score for each of two or more verdicts");
  if (range !== undefined && !(Number.isFinite(range.min) && Number.isFinite(range.max) && range.min < range.max))
    throw rubric.invalid(`'range' is ${JSON.stringify(range)}; it must be { min, max } with min < max`);
  if (typeof judge !== "function" && (typeof judge !== "string" || judge === ""))
    throw rubric.invalid(`'judge' is ${shown(judge)}; it must be the name of a model, or a function that returns a judge`);
  const judgeOf = (context: RewardContext<State>) =>
    typeof judge === "function"
      ? judge(context)
      : modelJudge(context.model(judge), { ...asking, verdicts: Object.keys(verdicts), ...(range !== undefined && { score: range }) });
  return answerReward(rubric, {
    expected: async (context: RewardContext<State>) => ({
      context,
      question: await resolveGiven(options.question, context),
      rubric: await resolveGiven(options.rubric, context),
      reference: options.reference === undefined ? undefined : await resolveGiven(options.reference, context),
    }),
    read: (value, fail) => {
      const matter = value as { context: RewardContext<State>; question: unknown; rubric: unknown; reference: unknown };
      for (const part of ["question", "rubric", "reference"] as const) {
        const text = matter[part];
        if (part === "reference" && text === undefined && options.reference === undefined) continue;
        if (typeof text !== "string" || text.trim() === "") throw fail(`'${part}' is ${shown(text)}; it must be a text that is not empty`);
      }
      return matter as { context: RewardContext<State>; question: string; rubric: string; reference: string | undefined };
    },
    check: async (answer, { context, reference, ...matter }) => {
      if (answer.length > MAX_CHARACTERS) return 0;
      const asked = { ...matter, answer, ...(reference !== undefined && { reference }) };
      const { verdict, score, reason } = await judgeOf(context).judge(asked, context.signal);
      const reward = range === undefined ? verdicts[verdict] : score;
      if (reward === undefined) throw rubric.failed(`the judge gave ${shown(range === undefined ? verdict : score)}, which has no score`);
      return { reward, verdict, reason };
    },
  });
}
