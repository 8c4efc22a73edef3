import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { catalogue } from "./catalogue.ts";
import { chatMessage, textOf } from "./chat.ts";
import { episodeAbilities, episodeReply, episodeStatus, oracleAnswer, replyRequest } from "./episode.ts";
import { reward } from "./reward.ts";

const anyMessage = fc.record(
  {
    role: fc.constantFrom("system", "developer", "user", "assistant", "tool"),
    content: fc.oneof(fc.string(), fc.constant(null), fc.array(fc.record({ type: fc.constant("text"), text: fc.string() }))),
    reasoning_content: fc.string(),
    tool_calls: fc.array(
      fc.record({ id: fc.string(), type: fc.constant("function"), function: fc.record({ name: fc.string(), arguments: fc.string() }) }),
    ),
  },
  { requiredKeys: ["role"], noNullPrototype: true },
);

describe("a chat message", () => {
  it("keeps every field, also those that are not in the schema", () => {
    fc.assert(
      fc.property(anyMessage, (message) => {
        expect(chatMessage.parse(message)).toEqual(message);
      }),
    );
  });

  it.each([null, "hello", {}, { role: "bot", content: "hello" }, { role: "user", content: 1 }, { role: "user", content: ["a"] }])(
    "is not %j",
    (value) => {
      expect(chatMessage.safeParse(value).success).toBe(false);
    },
  );

  it("has as its text the string, or the text parts joined", () => {
    expect(textOf({ content: "hello" })).toBe("hello");
    expect(textOf({ content: null })).toBe("");
    expect(textOf({})).toBe("");
    const parts = [{ type: "text", text: "a" }, { type: "image_url" }, { type: "text", text: "b" }];
    expect(textOf({ content: parts })).toBe("ab");
  });
});

describe("what is sent about an episode", () => {
  it("is a status with a reason or null", () => {
    expect(episodeStatus.parse({ done: true, reason: null })).toEqual({ done: true, reason: null });
    for (const wrong of [true, {}, { done: true }, { done: "true", reason: null }, { done: true, reason: 1 }])
      expect([wrong, episodeStatus.safeParse(wrong).success]).toEqual([wrong, false]);
  });

  it("is a reply with messages and a status", () => {
    const reply = { messages: [{ role: "user", content: "hello" }], status: { done: false, reason: null } };
    expect(episodeReply.parse(reply)).toEqual(reply);
    expect(episodeReply.safeParse({ messages: [] }).success).toBe(false);
    expect(replyRequest.safeParse({ message: "hello" }).success).toBe(false);
  });

  it("is a solution of tool calls and words, or null", () => {
    const actions = [{ tool: "echo", arguments: { text: "hello" } }, { say: "Done." }];
    expect(oracleAnswer.parse({ actions })).toEqual({ actions });
    expect(oracleAnswer.parse({ actions: null })).toEqual({ actions: null });
    for (const wrong of [{ tool: "echo" }, { tool: "echo", arguments: "text" }, { say: 1 }, "echo", {}])
      expect([wrong, oracleAnswer.safeParse({ actions: [wrong] }).success]).toEqual([wrong, false]);
  });
});

describe("a catalogue", () => {
  it("of a server without the episode API is accepted, and does not say what the environment defines", () => {
    expect(catalogue.parse({ total: 0, functions: [], reward: [], health: [] }).episode).toBeUndefined();
  });

  it("says of each part of an episode whether the environment defines it", () => {
    const abilities = {
      prompt: true,
      reply: false,
      status: true,
      stepRewards: false,
      digest: true,
      oracle: false,
      observation: false,
      hear: false,
    };
    expect(catalogue.parse({ total: 0, episode: abilities }).episode).toEqual(abilities);
    expect(episodeAbilities.safeParse({ prompt: true }).success).toBe(false);
  });
});

describe("a reward", () => {
  it("may have weights", () => {
    const value = { reward: 1, components: { a: 0.5 }, weights: { a: 2 } };
    expect(reward.parse(value)).toEqual(value);
    expect(reward.parse({ reward: 1, components: {} })).toEqual({ reward: 1, components: {} });
  });
});
