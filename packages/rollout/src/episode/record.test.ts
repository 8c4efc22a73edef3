import type { ChatMessage, ToolDescriptor } from "@aenv/contract";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { newTurn } from "../fixtures/turn.ts";
import { EpisodeRecord } from "./record.ts";

const says = (role: ChatMessage["role"], content: string): ChatMessage => ({ role, content });

/** Shows a conversation to the model, which writes the next message. */
function exchange(record: EpisodeRecord, messages: readonly ChatMessage[], words: string, continues: string | null = null): void {
  record.show({ messages: [...messages], tools: [] }, continues);
  record.messages.push(says("assistant", words));
  record.turns.push(newTurn({ message: record.messages.length - 1, completion_id: words }));
}

/** What the model saw and wrote in each turn, by the places that the record names. */
function turnsOf(record: EpisodeRecord): ChatMessage[][] {
  return record.turns.map(({ message, conversation }) => {
    const messages = conversation === undefined ? record.messages : (record.conversations[conversation]?.messages ?? []);
    return messages.slice(0, (message ?? -1) + 1);
  });
}

describe("the record of a program's conversations", () => {
  const ask = says("user", "Ask.");

  it("goes on with the conversation that a request begins with, also if the client writes it a little differently", () => {
    const record = new EpisodeRecord([ask]);
    const call = { id: "c", type: "function" as const, function: { name: "echo", arguments: '{"a":1}' } };
    record.show({ messages: [ask], tools: [] }, null);
    record.messages.push({ role: "assistant", content: "", reasoning_content: "Hm.", tool_calls: [call] });
    record.turns.push(newTurn({ message: 1 }));
    const echoed = { ...call, function: { name: "echo", arguments: '{ "a": 1 }' } };
    const result: ChatMessage = { role: "tool", tool_call_id: "c", content: "1" };
    exchange(
      record,
      [{ role: "user", content: [{ type: "text", text: "Ask." }] }, { role: "assistant", content: null, tool_calls: [echoed] }, result],
      "1.",
    );
    expect(record.conversations).toEqual([]);
    expect(record.messages).toMatchObject([ask, { reasoning_content: "Hm." }, result, { content: "1." }]);
    expect(record.turns.map(({ message }) => message)).toEqual([1, 3]);
  });

  it("keeps both conversations when a program rewrites its own, and each turn names its place", () => {
    const record = new EpisodeRecord([ask]);
    exchange(record, [ask], "A long answer.");
    exchange(record, [says("user", "In short: ask.")], "Short.");
    expect(record.messages.map(({ content }) => content)).toEqual(["In short: ask.", "Short."]);
    expect(turnsOf(record).map((messages) => messages.map(({ content }) => content))).toEqual([
      ["Ask.", "A long answer."],
      ["In short: ask.", "Short."],
    ]);
  });

  it("leaves out a beginning that the program did not use", () => {
    const record = new EpisodeRecord([ask]);
    exchange(record, [says("system", "Mine."), ask], "Done.");
    expect([record.messages.length, record.conversations]).toEqual([3, []]);
  });

  it("has the tools that were offered in each conversation", () => {
    const tools: ToolDescriptor[] = [{ name: "find", inputSchema: { type: "object" } }];
    const record = new EpisodeRecord();
    record.show({ messages: [ask], tools }, null);
    record.messages.push(says("assistant", "One."));
    record.turns.push(newTurn({ message: 1 }));
    exchange(record, [says("user", "Other.")], "Two.");
    expect([record.offeredTools, record.conversations[0]?.tools]).toEqual([[], tools]);
  });

  it("has all conversations in a copy, which goes on by itself", () => {
    const record = new EpisodeRecord();
    exchange(record, [ask], "One.");
    exchange(record, [says("user", "Other.")], "Two.");
    const copy = record.copy();
    expect([copy.conversations, copy.offeredTools, turnsOf(copy)]).toEqual([record.conversations, record.offeredTools, turnsOf(record)]);
    exchange(copy, [says("user", "Third.")], "Three.");
    expect([record.conversations.length, copy.conversations.length]).toEqual([1, 2]);
  });

  it("finds what the endpoint puts before a request that names an earlier answer; new instructions replace the old", () => {
    const record = new EpisodeRecord();
    exchange(record, [says("system", "Old."), ask], "first");
    exchange(record, [says("system", "New."), says("user", "And?")], "second", "first");
    expect(record.messages.map(({ content }) => content)).toEqual(["New.", "Ask.", "first", "And?", "second"]);
  });

  it("has for every turn exactly what the model saw, however conversations begin, branch and go on", () => {
    const steps = fc.array(fc.record({ from: fc.nat(), back: fc.nat({ max: 3 }), words: fc.constantFrom("a", "b", "c") }), {
      maxLength: 12,
    });
    fc.assert(
      fc.property(steps, (plan) => {
        const record = new EpisodeRecord([ask]);
        const seen: ChatMessage[][] = [];
        for (const [at, { from, back, words }] of plan.entries()) {
          const earlier = seen[from % (seen.length + 1)] ?? [];
          const shown = [...earlier.slice(0, Math.max(0, earlier.length - back)), says("user", words)];
          exchange(record, shown, `answer ${at}`);
          seen.push([...shown, says("assistant", `answer ${at}`)]);
        }
        expect(turnsOf(record)).toEqual(seen);
        expect(record.messages).toEqual(seen.at(-1) ?? [ask]);
      }),
    );
  });
});
