import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cut, cuts, textInPieces } from "../../fixtures/pieces.ts";
import { messagesDialect } from "./dialect.ts";
import { MessagesStream } from "./stream.ts";

const input = fc
  .dictionary(fc.string(), fc.jsonValue())
  .map((value) => JSON.stringify(value))
  .chain((whole) => cuts(whole.length).map((places) => ({ whole, pieces: cut(whole, places) })));

describe("a streamed message", () => {
  it("is read as the same message without a stream, whatever its events", () => {
    fc.assert(
      fc.property(textInPieces, textInPieces, fc.array(input, { maxLength: 3 }), (thinking, text, inputs) => {
        const blocks = [
          {
            start: { type: "thinking", thinking: "" },
            deltas: thinking.pieces.map((piece) => ({ type: "thinking_delta", thinking: piece })),
          },
          { start: { type: "text", text: "" }, deltas: text.pieces.map((piece) => ({ type: "text_delta", text: piece })) },
          ...inputs.map(({ pieces }, at) => ({
            start: { type: "tool_use", id: `t${at}`, name: "add", input: {} },
            deltas: pieces.map((piece) => ({ type: "input_json_delta", partial_json: piece })),
          })),
        ];
        const stream = new MessagesStream();
        stream.add({ type: "message_start", message: { id: "m", content: [], usage: { input_tokens: 5, output_tokens: 1 } } });
        for (const [index, { start, deltas }] of blocks.entries()) {
          stream.add({ type: "content_block_start", index, content_block: start });
          for (const delta of deltas) stream.add({ type: "content_block_delta", index, delta });
          stream.add({ type: "ping" });
          stream.add({ type: "content_block_stop", index });
        }
        stream.add({ type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 9 } });
        stream.add({ type: "message_stop" });
        const whole = {
          id: "m",
          content: [
            { type: "thinking", thinking: thinking.whole },
            { type: "text", text: text.whole },
            ...inputs.map((one, at) => ({ type: "tool_use", id: `t${at}`, name: "add", input: JSON.parse(one.whole) })),
          ],
          stop_reason: "end_turn",
          usage: { input_tokens: 5, output_tokens: 9 },
        };
        expect(messagesDialect.read(stream.answer)).toEqual(messagesDialect.read(whole));
      }),
    );
  });

  it("has no answer before its last event, and fails with the message of an error in it", () => {
    const stream = new MessagesStream();
    stream.add({ type: "message_start", message: { id: "m", content: [] } });
    expect(stream.answer).toBeNull();
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "Overloaded" } };
    expect(() => stream.add(overloaded)).toThrow(
      expect.objectContaining({ retryable: true, message: expect.stringContaining("Overloaded") }),
    );
  });

  it("with a tool call that is not JSON may be asked for again", () => {
    const stream = new MessagesStream();
    stream.add({ type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name: "add", input: {} } });
    stream.add({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: '{"n":' } });
    stream.add({ type: "message_stop" });
    expect(() => stream.answer).toThrow(expect.objectContaining({ retryable: true, message: expect.stringContaining("not JSON") }));
  });
});
