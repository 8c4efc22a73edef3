import { scriptedOpenAi } from "@aenv/testing";
import { describe, expect, it } from "vitest";
import type { Message } from "../core/messages/messages.ts";
import { ModelJudge } from "./judge.ts";

const talk: Message[] = [
  { role: "assistant", content: "Hi!", tool_calls: null },
  { role: "user", content: "bye", tool_calls: null },
];

describe("the judge", () => {
  const ask = async (answer: string) => {
    await using model = await scriptedOpenAi([answer]);
    const judge = new ModelJudge({ model: "scripted", baseUrl: model.baseUrl, apiKey: "k", temperature: 0 }, "Judge.");
    const checks = await judge.judge({ assertions: ["The agent is kind.", "It's short."], trajectory: talk });
    return { checks, question: model.requests[0]?.messages[1]?.text };
  };

  it("sends the conversation and the outcomes to the model, and returns its verdicts", async () => {
    const verdict = { expectedOutcome: "The agent is kind.", metExpectation: "yes", reasoning: "It says hi." };
    const { checks, question } = await ask(JSON.stringify({ results: [verdict] }));
    expect(checks).toEqual([{ nl_assertion: "The agent is kind.", met: true, justification: "It says hi." }]);
    const pad = "        ";
    const list = `['The agent is kind.', "It's short."]`;
    expect(question).toBe(`\n${pad}conversation:\n${pad}assistant: Hi!\nuser: bye\n${pad}\n${pad}expectedOutcomes:\n${pad}${list}\n${pad}`);
  });

  it("sends no request when its signal has fired", async () => {
    await using model = await scriptedOpenAi(["{}"]);
    const judge = new ModelJudge({ model: "scripted", baseUrl: model.baseUrl, apiKey: "k", temperature: 0 }, "Judge.");
    await expect(
      judge.judge({ assertions: ["The agent is kind."], trajectory: talk }, AbortSignal.abort(new Error("not needed"))),
    ).rejects.toThrow("not needed");
    expect(model.requests).toEqual([]);
  });

  it.each([
    ["is fenced", '```json\n{"results": []}\n```', "not a JSON object"],
    ["lacks a verdict", '{"results": [{"expectedOutcome": "x", "reasoning": "y"}]}', "Field required"],
    ["has no list of results", '{"results": 3}', "not a list"],
  ])("gives an error, not a verdict, when the answer %s", async (_, answer, problem) => {
    await expect(ask(answer)).rejects.toThrow(problem);
    await expect(ask(answer)).rejects.toMatchObject({ code: "model.failed", retryable: true });
  });
});
