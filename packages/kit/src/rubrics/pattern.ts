import { Script } from "node:vm";
import type { RewardDefinition } from "../definition/definition.ts";
import { ANSWER_OPTIONS, type AnswerOptions, answerReward } from "./answer.ts";
import { Rubric, shown } from "./rubric.ts";

export interface PatternAnswerOptions<State> extends AnswerOptions<State> {
  readonly pattern: RegExp;
  /** `whole`, the default, wants all of the answer to match; `anywhere` is content with a part of it. */
  readonly match?: "whole" | "anywhere";
}

const TIMEOUT_MS = 250;
const test = new Script("pattern.test(text)");

/**
 * 1 if the agent's answer matches a regular expression, else 0. A pattern that needs more than 250 ms for an answer, because it tries
 * exponentially many ways, gives no score.
 *
 * @example
 * patternAnswer({ name: "iso-date", pattern: /\d{4}-\d{2}-\d{2}/ })
 */
// biome-ignore lint/suspicious/noExplicitAny: the type of the state cannot be known here, as for `reward`
export function patternAnswer<State = any>(options: PatternAnswerOptions<State>): RewardDefinition<State> {
  const rubric = new Rubric(patternAnswer, options, [...ANSWER_OPTIONS, "pattern", "match"]);
  const { pattern, match = "whole" } = options;
  if (!(pattern instanceof RegExp)) throw rubric.invalid(`'pattern' is ${shown(pattern)}; it must be a regular expression`);
  if (match !== "whole" && match !== "anywhere") throw rubric.invalid(`'match' is ${shown(match)}; it must be "whole" or "anywhere"`);
  // Flags that keep a position would make the second score differ from the first. ^ and $ could mean a line.
  const flags = pattern.flags.replace(/[gy]/g, "");
  const source = match === "whole" ? `(?<![\\s\\S])(?:${pattern.source})(?![\\s\\S])` : pattern.source;
  const compiled = new RegExp(source, flags);
  if (match === "anywhere" && compiled.test(""))
    throw rubric.invalid(`'pattern' is ${shown(String(pattern))}, which is found in every answer`);
  return answerReward(rubric, {
    expected: pattern,
    read: () => compiled,
    check: (answer) => {
      const text = match === "whole" ? answer.trim() : answer;
      try {
        return test.runInNewContext({ pattern: compiled, text }, { timeout: TIMEOUT_MS }) === true ? 1 : 0;
      } catch (error) {
        if ((error as { code?: unknown }).code !== "ERR_SCRIPT_EXECUTION_TIMEOUT") throw error;
        const advice = "write one in which no repeated part itself repeats";
        throw rubric.failed(`'pattern' ${shown(String(pattern))} needs more than ${TIMEOUT_MS} ms for this answer; ${advice}`);
      }
    },
  });
}
