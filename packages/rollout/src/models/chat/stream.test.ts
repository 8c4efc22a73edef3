import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textInPieces } from "../../fixtures/pieces.ts";
import { readCompletion } from "./completion.ts";
import { ChatStream } from "./stream.ts";

const chunkOf = (delta: object, rest: object = {}) => ({
  id: "c",
  object: "chat.completion.chunk",
  choices: [{ index: 0, delta, finish_reason: null, ...rest }],
});

const calls = fc.array(fc.record({ name: fc.string({ minLength: 1 }), arguments: textInPieces }), { maxLength: 3 });

describe("a streamed chat completion", () => {
  it("is read as the same answer without a stream, whatever its chunks", () => {
    fc.assert(
      fc.property(textInPieces, textInPieces, calls, fc.boolean(), (content, reasoning, toolCalls, isInterleaved) => {
        const stream = new ChatStream();
        stream.add(chunkOf({ role: "assistant", content: null }));
        for (const piece of reasoning.pieces) stream.add(chunkOf({ reasoning_content: piece }));
        for (const piece of content.pieces) stream.add(chunkOf({ content: piece }));
        const parts = toolCalls.flatMap(({ name, arguments: args }, index) => [
          { at: 0, index, id: `call_${index}`, type: "function", function: { name, arguments: "" } },
          ...args.pieces.map((piece, at) => ({ at: at + 1, index, function: { arguments: piece } })),
        ]);
        if (isInterleaved) parts.sort((a, b) => a.at - b.at);
        for (const { at: _, ...part } of parts) stream.add(chunkOf({ tool_calls: [part] }));
        stream.add(chunkOf({}, { finish_reason: toolCalls.length > 0 ? "tool_calls" : "stop" }));
        stream.add({ id: "c", choices: [], usage: { prompt_tokens: 7, completion_tokens: 3 } });
        const whole = {
          id: "c",
          choices: [
            {
              index: 0,
              finish_reason: toolCalls.length > 0 ? "tool_calls" : "stop",
              message: {
                role: "assistant",
                content: content.whole,
                ...(reasoning.whole !== "" && { reasoning_content: reasoning.whole }),
                ...(toolCalls.length > 0 && {
                  tool_calls: toolCalls.map(({ name, arguments: args }, index) => ({
                    id: `call_${index}`,
                    type: "function",
                    function: { name, arguments: args.whole },
                  })),
                }),
              },
            },
          ],
          usage: { prompt_tokens: 7, completion_tokens: 3 },
        };
        expect(readCompletion(stream.answer)).toEqual(readCompletion(whole));
      }),
    );
  });

  it("joins the tokens of its chunks, as vLLM sends them", () => {
    const stream = new ChatStream();
    stream.add({ ...chunkOf({ role: "assistant" }), prompt_token_ids: [1, 2] });
    stream.add(chunkOf({ content: "a" }, { token_ids: [3], logprobs: { content: [{ logprob: -0.5 }] } }));
    stream.add(chunkOf({ content: "bc" }, { token_ids: [4, 5], logprobs: { content: [{ logprob: -1 }, { logprob: 0.0001 }] } }));
    stream.add(chunkOf({}, { finish_reason: "stop" }));
    expect(readCompletion(stream.answer)).toMatchObject({
      message: { content: "abc" },
      turn: { prompt_token_ids: [1, 2], completion_token_ids: [3, 4, 5], logprobs: [-0.5, -1, 0] },
    });
  });

  it.each([
    ["a list for each choice", [[1, 2]], [[3, 4]]],
    ["one list", [1, 2], [3, 4]],
  ])("has the tokens of its last chunk, as SGLang sends them: %s", (_, input_ids, output_ids) => {
    const stream = new ChatStream();
    stream.add(chunkOf({ content: "ab" }, { logprobs: { content: [{ logprob: -0.5 }, { logprob: -1 }] } }));
    stream.add(chunkOf({}, { finish_reason: "stop" }));
    stream.add({ id: "c", choices: [], sglext: { input_ids, output_ids } });
    expect(readCompletion(stream.answer).turn).toMatchObject({
      prompt_token_ids: [1, 2],
      completion_token_ids: [3, 4],
      logprobs: [-0.5, -1],
    });
  });

  it("has no answer before the model has finished", () => {
    const stream = new ChatStream();
    expect(stream.answer).toBeNull();
    stream.add(chunkOf({ content: "half" }));
    expect(stream.answer).toBeNull();
  });
});
