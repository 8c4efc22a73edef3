import { describe, expect, it } from "vitest";
import { readCompletion } from "./completion.ts";

const message = { role: "assistant", content: "ab" };
const logprobs = {
  content: [
    { token: "a", logprob: -0.1 },
    { token: "b", logprob: -0.2 },
  ],
};
const usage = { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 };
const tokens = { prompt_token_ids: [1, 2, 3], completion_token_ids: [4, 5], logprobs: [-0.1, -0.2] };

describe("a chat completion", () => {
  it("of vLLM has the prompt's tokens at the top and the sampled ones in the choice", () => {
    const answer = {
      id: "c",
      prompt_token_ids: [1, 2, 3],
      choices: [{ index: 0, message, finish_reason: "stop", token_ids: [4, 5], logprobs }],
      usage,
    };
    expect(readCompletion(answer).turn).toEqual({
      ...tokens,
      completion_id: "c",
      finish_reason: "stop",
      weight_versions: [],
      prompt_tokens: 3,
      completion_tokens: 2,
    });
  });

  it("of SGLang has both in the choice, and says which weights wrote it", () => {
    const choice = { index: 0, message, finish_reason: "stop", prompt_token_ids: [1, 2, 3], response_token_ids: [4, 5], logprobs };
    const one = readCompletion({ id: "c", choices: [choice], metadata: { weight_version: "7" }, usage });
    expect(one.turn).toMatchObject({ ...tokens, weight_versions: [{ version: "7", start: 0, end: 2 }] });
    const spans = [
      { version: "7", start: 0, end: 1 },
      { version: "8", start: 1, end: 2 },
    ];
    const two = readCompletion({ id: "c", choices: [choice], metadata: { weight_version: "8", weight_versions: spans }, usage });
    expect(two.turn?.weight_versions).toEqual(spans);
  });

  it("without usage has as many tokens as it has ids", () => {
    const choice = { message, finish_reason: "stop", token_ids: [4, 5], logprobs };
    expect(readCompletion({ prompt_token_ids: [1, 2, 3], choices: [choice] }).turn).toMatchObject({
      prompt_tokens: 3,
      completion_tokens: 2,
    });
  });

  it("of a hosted API has no tokens, and that is not an error", () => {
    expect(readCompletion({ id: "c", choices: [{ message, finish_reason: "stop", logprobs: null }] }).turn).toMatchObject({
      prompt_token_ids: null,
      completion_token_ids: null,
      logprobs: null,
      prompt_tokens: null,
    });
  });

  it("with another number of tokens than of log-probabilities is refused with both", () => {
    const choice = { message, finish_reason: "stop", token_ids: [4, 5, 6], logprobs };
    expect(() => readCompletion({ choices: [choice] })).toThrow("3 tokens but 2 log-probabilities");
  });

  it("that the engine aborted is no answer, and the model may be asked again", () => {
    expect(() => readCompletion({ choices: [{ message, finish_reason: "abort" }] })).toThrow(
      expect.objectContaining({ name: "ModelError", retryable: true, message: expect.stringContaining("aborted") }),
    );
  });

  it("takes a null where there are no tool calls, and does not keep it", () => {
    const answer = { role: "assistant", content: "ok", tool_calls: null, refusal: null };
    expect(readCompletion({ choices: [{ message: answer }] }).message).toEqual({ role: "assistant", content: "ok", refusal: null });
  });

  it("with 200,000 bad choices is refused in a short message, because only the first is read", () => {
    const choices = Array(200_000).fill(0);
    expect(() => readCompletion({ choices })).toThrow("the model's answer is not a chat completion: choices.0 must be an object");
  });

  it.each([
    ["tool calls", { message: { role: "assistant", content: "", tool_calls: Array(200_000).fill(0) } }, "more than 1000 parts"],
    ["token ids", { message, token_ids: Array(200_000).fill("x") }, "must be token ids"],
    ["log-probabilities", { message, logprobs: { content: Array(200_000).fill(0) } }, "must be log-probabilities"],
  ])("with 200,000 bad %s is refused in a short message", (_, choice, why) => {
    const refused = expect.objectContaining({ name: "ModelError", message: expect.stringContaining(why) });
    expect(() => readCompletion({ choices: [choice] })).toThrow(refused);
    expect(() => readCompletion({ choices: [choice] })).toThrow(/^.{1,300}$/);
  });

  it.each([[{}], [{ choices: [] }], [null], [{ choices: [{ message: { role: "user", content: "x" } }] }]])(
    "is not %j, and the model may be asked again",
    (answer) => {
      expect(() => readCompletion(answer)).toThrow(expect.objectContaining({ name: "ModelError", retryable: true }));
    },
  );
});
