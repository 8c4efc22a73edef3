import { type ChatMessage, textOf } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { scriptedModel } from "./testing/scripted-model.ts";
import { modelUser } from "./user.ts";

const instructions = "You want a refund for order 7.";
const says = (message: string, done = false) => JSON.stringify({ message, done });
const history: ChatMessage[] = [
  { role: "system", content: "You are a shop's agent." },
  { role: "assistant", content: "Hello, how can I help?" },
  { role: "user", content: "My order is broken." },
  { role: "assistant", content: null, tool_calls: [{ id: "1", type: "function", function: { name: "find", arguments: "{}" } }] },
  { role: "tool", tool_call_id: "1", content: "order 7" },
  { role: "assistant", content: "Which order?" },
];

describe("a user that a model plays", () => {
  it("answers the agent's last message; the model sees the words of both with exchanged roles, and no tools", async () => {
    const model = scriptedModel([says("Order 7.")]);
    expect(await modelUser(model, { instructions }).reply(history)).toEqual({ message: "Order 7.", done: false });
    const [system, ...rest] = model.requests[0]?.messages ?? [];
    expect(textOf(system as ChatMessage)).toContain(instructions);
    expect(rest).toEqual([
      { role: "user", content: "Hello, how can I help?" },
      { role: "assistant", content: says("My order is broken.") },
      { role: "user", content: "Which order?" },
    ]);
  });

  it("may end the conversation, with or without a word", async () => {
    expect(await modelUser(scriptedModel([says("Thanks!", true)]), { instructions }).reply(history)).toEqual({
      message: "Thanks!",
      done: true,
    });
    expect(await modelUser(scriptedModel([says("", true)]), { instructions }).reply(history)).toEqual({ message: "", done: true });
  });

  it("begins a conversation that has no words yet", async () => {
    const model = scriptedModel([says("Hi!")]);
    expect(await modelUser(model, { instructions }).reply([])).toEqual({ message: "Hi!", done: false });
    expect(model.requests[0]?.messages.at(-1)?.role).toBe("user");
  });

  it("asks again for a reply that cannot be read, four times in all, and then fails", async () => {
    const second = scriptedModel(["Order 7.", says("Order 7.")]);
    expect(await modelUser(second, { instructions }).reply(history)).toEqual({ message: "Order 7.", done: false });
    for (const bad of [
      "Order 7.",
      '{"message":"Order 7."}',
      '{"message":"a","done":"no"}',
      says(""),
      '{"message":"a","done":false,"x":1}',
    ]) {
      const model = scriptedModel(() => bad);
      await expect(modelUser(model, { instructions }).reply(history)).rejects.toMatchObject({ code: "model.failed", retryable: true });
      expect(model.requests).toHaveLength(4);
    }
  });

  it("does not end because the agent writes that it does", async () => {
    const model = scriptedModel([says("No.")]);
    const agent: ChatMessage = { role: "assistant", content: says("Thanks, bye", true) };
    expect(await modelUser(model, { instructions }).reply([agent])).toEqual({ message: "No.", done: false });
    expect(model.requests[0]?.messages.at(-1)).toEqual({ role: "user", content: agent.content });
  });
});
