import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { digestFrom, oracleFrom, promptFrom, promptFromObservation, replyFrom, statusFrom, stepRewardFrom } from "./episode-parts.ts";

const failed = (message: RegExp) => expect.objectContaining({ code: "episode.failed", message: expect.stringMatching(message) });

describe("a prompt", () => {
  it("is the user's message, or the messages as they are", () => {
    expect(promptFrom("Say hello.")).toEqual({ messages: [{ role: "user", content: "Say hello." }] });
    const messages = [
      { role: "system", content: "Be brief." },
      { role: "user", content: [{ type: "text", text: "Hello." }] },
    ];
    expect(promptFrom(messages)).toEqual({ messages });
    expect(promptFrom([])).toEqual({ messages: [] });
  });

  it.each([undefined, null, 7, { role: "user", content: "hello" }, ["hello"], [{ role: "bot", content: "hello" }], [{ content: "hello" }]])(
    "is not %j",
    (value) => {
      expect(() => promptFrom(value)).toThrow(failed(/^'prompt' returned .*; it must return a text, or a list of messages with 'role'/));
    },
  );

  it("that has no JSON form is an error with the path of the value", () => {
    expect(() => promptFrom([{ role: "user", content: "hello", at: () => 1 }])).toThrow(failed(/what prompt returned .*\[0\]\.at/));
  });

  it("is the observation where the environment defines none: text as it is, any other value as JSON", () => {
    expect(promptFromObservation("Say hello.")).toEqual({ messages: [{ role: "user", content: "Say hello." }] });
    expect(promptFromObservation({ board: [1, 2] })).toEqual({ messages: [{ role: "user", content: '{"board":[1,2]}' }] });
    expect(promptFromObservation(["a"])).toEqual({ messages: [{ role: "user", content: '["a"]' }] });
    expect(promptFromObservation(null)).toEqual({ messages: [] });
  });
});

describe("a reply", () => {
  it("goes on unless it says that the episode is over", () => {
    const open = { done: false, reason: null };
    expect(replyFrom({ content: "And then?" })).toEqual({ messages: [{ role: "user", content: "And then?" }], status: open });
    expect(replyFrom({})).toEqual({ messages: [], status: open });
    expect(replyFrom({ done: true, reason: "the user left" })).toEqual({ messages: [], status: { done: true, reason: "the user left" } });
  });

  it("has the text first, then the messages", () => {
    const { messages } = replyFrom({ content: "one", messages: [{ role: "system", content: "two" }] });
    expect(messages.map(({ content }) => content)).toEqual(["one", "two"]);
  });

  it.each([
    undefined,
    null,
    "hello",
    ["hello"],
    { content: 1 },
    { messages: "hello" },
    { messages: null },
    { messages: [{ content: "hello" }] },
    { done: "yes" },
    { done: null },
    { done: true, reason: 1 },
  ])("is not %j", (value) => {
    expect(() => replyFrom(value)).toThrow(failed(/^'reply' returned .*; it must return \{ content, messages, done, reason \}/));
  });
});

describe("a status", () => {
  it.each([
    [true, { done: true, reason: null }],
    [false, { done: false, reason: null }],
    [{ done: true }, { done: true, reason: null }],
    [
      { done: true, reason: "won" },
      { done: true, reason: "won" },
    ],
  ])("is %j", (value, expected) => {
    expect(statusFrom(value)).toEqual(expected);
  });

  it.each([undefined, null, 1, "done", [], {}, { done: 1 }, { reason: "won" }, { done: true, reason: 3 }])("is not %j", (value) => {
    expect(() => statusFrom(value)).toThrow(failed(/^'status' returned .*; it must return true, false, or \{ done, reason \}/));
  });
});

describe("a step reward", () => {
  it("is any finite number", () => {
    fc.assert(
      fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
        expect(stepRewardFrom(value)).toEqual({ reward: value, components: {} });
      }),
    );
  });

  it.each([undefined, null, Number.NaN, Number.POSITIVE_INFINITY, "1", true, { reward: 1 }])(
    "is not %j, and that is never a 0",
    (value) => {
      expect(() => stepRewardFrom(value)).toThrow(failed(/^'stepReward' returned .*; it must return a finite number$/));
    },
  );
});

describe("a solution", () => {
  it("is tool calls and words, or null if there is none", () => {
    const actions = [{ tool: "echo", arguments: { text: "hello" } }, { say: "Done." }];
    expect(oracleFrom(actions)).toEqual({ actions });
    expect(oracleFrom([])).toEqual({ actions: [] });
    expect(oracleFrom(null)).toEqual({ actions: null });
    expect(oracleFrom(undefined)).toEqual({ actions: null });
  });

  it.each([true, "echo", [{ tool: "echo" }], [{ tool: "echo", arguments: [] }], [{ say: null }], { say: "Done." }])(
    "is not %j",
    (value) => {
      expect(() => oracleFrom(value)).toThrow(
        failed(/^'oracle' returned .*; it must return a list of \{ tool, arguments \} and \{ say \}/),
      );
    },
  );
});

describe("a digest", () => {
  it("does not depend on the order of keys, and differs for different values", () => {
    fc.assert(
      fc.property(fc.dictionary(fc.string(), fc.jsonValue()), (value) => {
        const turned = Object.fromEntries(Object.entries(value).reverse());
        expect(digestFrom(turned)).toEqual(digestFrom(value));
        expect(digestFrom([value])).not.toEqual(digestFrom(value));
      }),
    );
    expect(digestFrom({}).digest).toMatch(/^sha256:[0-9a-f]{64}$/);
  });

  it("of a value without a JSON form is an error", () => {
    expect(() => digestFrom({ at: () => 1 })).toThrow(failed(/what digest returned .*at/));
  });
});

describe("an error about a value", () => {
  it("shows a long or cyclic value shortened", () => {
    const cyclic: Record<string, unknown> = { text: "x".repeat(1_000) };
    cyclic.self = cyclic;
    for (const value of [cyclic, "x".repeat(1_000), 10n])
      expect(() => statusFrom(value)).toThrow(
        expect.objectContaining({ message: expect.stringMatching(/^'status' returned .{1,200}; it must/) }),
      );
  });
});
