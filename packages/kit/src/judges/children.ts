import { PlatformError, textOf, tryJson } from "@aenv/contract";
import * as z from "zod";
import type { Child } from "../definition/children.ts";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { type Judge, type ModelJudgeOptions, modelJudge, type Verdict } from "./judge.ts";
import type { UserSimulator } from "./user.ts";

const matter = z.object({ question: z.string(), answer: z.string(), reference: z.string().optional(), rubric: z.string() });
const verdict = z.object({ verdict: z.string(), score: z.number().optional(), reason: z.string() });

export interface JudgeEnvironmentOptions extends ModelJudgeOptions {
  /** The name of its model in `deployConfig.models`. */
  readonly model: string;
}

/**
 * An environment that is a judge: others use it as a child, so it has a version, and a model of its own. It has the tool `judge`.
 *
 * @example
 * export default judgeEnvironment({ model: "main", verdicts: ["good", "bad"] });
 */
export function judgeEnvironment({ model: name, ...options }: JudgeEnvironmentOptions): EnvironmentDefinition {
  return defineEnvironment({
    tools: [
      {
        name: "judge",
        description: "Judges an answer to a question by a rubric.",
        input: matter,
        run: ({ reference, ...given }, { model, signal }) =>
          modelJudge(model(name), options).judge({ ...given, ...(reference !== undefined && { reference }) }, signal),
      },
    ],
  }) as EnvironmentDefinition;
}

/** The judge that a child is: `childJudge(children.get("judge"))`. What is no verdict fails with `model.failed`. */
export function childJudge(child: Child): Judge {
  return {
    judge: async (given, signal) => {
      signal?.throwIfAborted();
      const { text, isError } = await child.callTool("judge", { ...given });
      const { success, data } = verdict.safeParse(isError ? null : tryJson(text));
      if (!success) throw new PlatformError("model.failed", `the child '${child.name}' gave no verdict: ${text.slice(0, 300)}`);
      const { score, ...rest } = data;
      return { ...rest, ...(score !== undefined && { score }) } satisfies Verdict;
    },
  };
}

/**
 * The user that a child plays: `childUser(children.get("user"))`. The child remembers the conversation itself, so it gets the last
 * message of the agent only. It is an agent, or any environment with `reply`.
 */
export function childUser(child: Child): UserSimulator {
  return {
    reply: async (history, signal) => {
      signal?.throwIfAborted();
      const last = history.findLast(({ role }) => role === "assistant");
      const { messages, status } = await child.reply(last === undefined ? "" : textOf(last));
      const message = messages.map(textOf).join("\n");
      if (message.trim() === "" && !status.done)
        throw new PlatformError("model.failed", `the child '${child.name}' said nothing as the user`);
      return { message, done: status.done };
    },
  };
}
