import { type ChatMessage, PlatformError, readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { defineEnvironment, type EnvironmentDefinition, type RewardDefinition } from "../definition/definition.ts";
import type { ModelCalls } from "../models/model.ts";
import { turn } from "../models/testing/turn.ts";
import { type Served, serve } from "../serve/serve.ts";
import { judgedAnswer } from "./judged-answer.ts";
import { verdictFor } from "./testing/scripted-model.ts";

const base = { name: "helpful", judge: "judge", question: "What is the capital?", rubric: "It names Oslo." };

let served: Served | undefined;
afterEach(() => served?.close());

/** The answer of an environment with this reward to a request for the reward, after the agent has said something. */
async function rewardOf(reward: RewardDefinition, said: string | null, call: (messages: readonly ChatMessage[]) => string) {
  const asked: string[] = [];
  const models: ModelCalls = {
    call: async (_, name, { messages }) => {
      asked.push(name);
      const content = call(messages as readonly ChatMessage[]);
      const message = { role: "assistant" as const, content };
      return { message, turn };
    },
  };
  const definition = defineEnvironment({ rewards: [reward] }) as EnvironmentDefinition;
  served = await serve(definition, { name: "e", version: "1.0.0", port: 0, writeLog: () => {}, models });
  if (said !== null) await post("/episode/reply", { message: { role: "assistant", content: said } });
  const { status, body } = await post("/task/reward", {});
  return { status, body, asked };
}

async function post(path: string, body: object): Promise<{ readonly status: number; readonly body: unknown }> {
  const response = await fetch(`${served?.url}${path}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: JSON.parse(await readBoundedText(response.body, { maxBytes: 1_000_000 })) };
}

describe("judgedAnswer", () => {
  it("is the score of the verdict on what the agent said last, with the judge's reason", async () => {
    for (const [verdict, reward] of [
      ["pass", 1],
      ["fail", 0],
    ] as const) {
      const { body, asked } = await rewardOf(judgedAnswer(base), "Oslo", (messages) => verdictFor(messages, { verdict }));
      expect(body).toMatchObject({ data: { reward, verdict, reason: "because" } });
      expect(asked).toEqual(["judge"]);
      await served?.close();
    }
  });

  it("is the model's own score, if a range is given", async () => {
    const reward = judgedAnswer({ ...base, range: { min: 0, max: 5 }, verdicts: { good: 1, bad: 0 } });
    const { body } = await rewardOf(reward, "Oslo", (messages) => verdictFor(messages, { verdict: "good", score: 3.5 }));
    expect(body).toMatchObject({ data: { reward: 3.5 } });
  });

  it.each([null, "  ", "x".repeat(100_001)])(
    "is 0 without asking the model, if there is no answer that it could judge (%#)",
    async (said) => {
      const { body, asked } = await rewardOf(judgedAnswer(base), said, () => "never asked");
      expect(body).toMatchObject({ data: 0 });
      expect(asked).toEqual([]);
    },
  );

  it("is unscored with model.failed, and no number, if the model gives no verdict or fails", async () => {
    const fail = () => {
      throw new PlatformError("model.failed", "the endpoint is gone");
    };
    for (const call of [() => "It passes!", fail]) {
      const { status, body } = await rewardOf(judgedAnswer(base), "Oslo", call);
      expect([status, body]).toMatchObject([502, { success: false, errorInfo: { code: "model.failed", retryable: true } }]);
      await served?.close();
    }
  });

  it("takes any other judge, whose verdicts must have a score", async () => {
    const by = (verdict: string) => judgedAnswer({ ...base, judge: () => ({ judge: async () => ({ verdict, reason: "r" }) }) });
    expect((await rewardOf(by("pass"), "Oslo", () => "")).body).toMatchObject({ data: { reward: 1 } });
    await served?.close();
    expect(JSON.stringify((await rewardOf(by("great"), "Oslo", () => "")).body)).toContain(
      'the judge gave \\"great\\", which has no score',
    );
  });

  it("is no zero if the task has no question", async () => {
    const reward = judgedAnswer({ ...base, question: ({ task }) => task?.question as string });
    const { status, body } = await rewardOf(reward, null, () => "");
    expect(status).toBe(500);
    expect(JSON.stringify(body)).toContain("'question' is undefined; it must be a text that is not empty");
  });

  it.each([
    [{ judge: "" }, "'judge' is \"\""],
    [{ verdicts: { pass: 1 } }, "two or more verdicts"],
    [{ verdicts: { pass: 1, fail: Number.NaN } }, "a finite score"],
    [{ range: { min: 2, max: 1 } }, "min < max"],
    [{ rubrics: "x" }, "did you mean 'rubric'?"],
  ])("refuses wrong options (%#)", (options, problem) => {
    expect(() => judgedAnswer({ ...base, ...options } as never)).toThrow(problem);
  });
});
