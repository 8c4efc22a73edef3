import { describe, expect, it } from "vitest";
import { messagesDialect } from "./dialect.ts";
import { MessagesStream } from "./stream.ts";

const INPUT = '{"gb":2.0,"deep":[1e3]}';

describe("the input of a tool call in a message", () => {
  it.each([
    ["an answer", () => messagesDialect.parse(`{"id":"m","content":[{"type":"tool_use","id":"t","name":"add","input":${INPUT}}]}`)],
    ["a stream", streamed],
  ])("keeps the notation of its numbers in %s", (_, answer) => {
    const { message } = messagesDialect.read(answer());
    expect(message.tool_calls?.[0]?.function.arguments).toBe(INPUT);
    expect(message.anthropic_content).toMatchObject([{ type: "tool_use", input: { gb: 2, deep: [1_000] } }]);
  });
});

function streamed(): unknown {
  const stream = new MessagesStream();
  stream.add({ type: "message_start", message: { id: "m" } });
  stream.add({ type: "content_block_start", index: 0, content_block: { type: "tool_use", id: "t", name: "add", input: {} } });
  stream.add({ type: "content_block_delta", index: 0, delta: { type: "input_json_delta", partial_json: INPUT } });
  stream.add({ type: "message_stop" });
  return stream.answer;
}
