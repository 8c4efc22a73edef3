import type { ChatMessage } from "@aenv/contract";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isBeginningOf } from "../episode/conversation.ts";
import { chatDialect } from "./chat/dialect.ts";
import { messagesDialect } from "./messages/dialect.ts";
import { responsesDialect } from "./responses/dialect.ts";

const words = fc.string({ minLength: 1 });

/** One turn of an agent, and what follows: results of its tools, or a user's words. */
const exchange = fc.record({ text: words, results: fc.array(fc.string(), { maxLength: 3 }), reply: words });

const conversation = fc
  .tuple(fc.option(words), words, fc.array(exchange, { maxLength: 4 }))
  .map(([system, first, exchanges]): ChatMessage[] => [
    ...(system === null ? [] : [{ role: "system" as const, content: system }]),
    { role: "user", content: first },
    ...exchanges.flatMap(({ text, results, reply }, turn): ChatMessage[] => {
      const calls = results.map((content, at) => ({ id: `c${turn}-${at}`, name: "find", arguments: JSON.stringify({ content }) }));
      if (calls.length === 0)
        return [
          { role: "assistant", content: text },
          { role: "user", content: reply },
        ];
      return [
        { role: "assistant", content: text, tool_calls: calls.map(({ id, ...called }) => ({ id, type: "function", function: called })) },
        ...results.map((content, at): ChatMessage => ({ role: "tool", tool_call_id: `c${turn}-${at}`, content })),
      ];
    }),
  ]);

const tools = [
  { name: "find", description: "Finds.", inputSchema: { type: "object" as const, properties: { content: { type: "string" } } } },
];

describe.each([chatDialect, responsesDialect, messagesDialect])("a request of the API $api", (dialect) => {
  it("is read as the conversation and the tools that were written into it", () => {
    fc.assert(
      fc.property(conversation, (messages) => {
        const request = { model: "m", messages, tools, seed: 1, maxTokens: undefined, sampling: {}, streams: false, wantsTokens: false };
        const seen = dialect.conversationOf(JSON.parse(JSON.stringify(dialect.body(request))));
        expect(seen?.tools).toEqual(tools);
        expect(seen?.messages.length).toBe(messages.length);
        expect(isBeginningOf(messages, seen?.messages ?? [])).toBe(true);
      }),
    );
  });

  it.each([{}, { messages: 1, input: 1 }, { messages: [1], input: null }])("that holds none is not read: %j", (request) => {
    expect(dialect.conversationOf(request)).toBeNull();
  });
});

describe("a request of the Responses API", () => {
  it("may hold a text alone, instructions, and items without a type", () => {
    const { conversationOf } = responsesDialect;
    expect(conversationOf({ instructions: "Be brief.", input: "Hi." })?.messages).toEqual([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi." },
    ]);
    const input = [
      { role: "user", content: [{ type: "input_text", text: "Hi." }] },
      { role: "assistant", content: "Yes?" },
    ];
    expect(conversationOf({ input })?.messages).toMatchObject([
      { role: "user", content: "Hi." },
      { role: "assistant", content: "Yes?" },
    ]);
  });

  it("keeps reasoning, speech and calls of one turn in one message, and images as parts", () => {
    const image = { type: "input_image", image_url: "data:" };
    const input = [
      { type: "message", role: "user", content: [{ type: "input_text", text: "See." }, image] },
      { type: "reasoning", summary: [{ type: "summary_text", text: "A cat." }] },
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "I look." }] },
      { type: "function_call", call_id: "c", name: "look", arguments: "{}" },
      { type: "function_call_output", call_id: "c", output: [{ type: "input_text", text: "seen" }] },
    ];
    expect(responsesDialect.conversationOf({ input })?.messages).toMatchObject([
      { role: "user", content: [{ type: "text", text: "See." }, image] },
      { role: "assistant", content: "I look.", reasoning_content: "A cat.", tool_calls: [{ id: "c", function: { name: "look" } }] },
      { role: "tool", tool_call_id: "c", content: "seen" },
    ]);
  });
});

describe("a request of the Messages API", () => {
  it("may hold instructions as blocks, and results of tools beside words", () => {
    const messages = [
      { role: "user", content: "Hi." },
      {
        role: "assistant",
        content: [
          { type: "thinking", thinking: "Hm." },
          { type: "tool_use", id: "c", name: "look", input: { at: 1 } },
        ],
      },
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "c", content: [{ type: "text", text: "seen" }] },
          { type: "text", text: "And?" },
        ],
      },
    ];
    expect(messagesDialect.conversationOf({ system: [{ type: "text", text: "Be brief." }], messages })?.messages).toMatchObject([
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hi." },
      { role: "assistant", content: "", reasoning_content: "Hm.", tool_calls: [{ id: "c", function: { arguments: '{"at":1}' } }] },
      { role: "tool", tool_call_id: "c", content: "seen" },
      { role: "user", content: "And?" },
    ]);
  });
});
