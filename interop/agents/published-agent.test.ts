import { join } from "node:path";
import { describeNeeding, type ScriptedOpenAi, scriptedOpenAi } from "@aenv/testing";
import { Environment } from "aenvironment";
import { type Platform, publish, startPlatform } from "aenvironment/platform-tests";
import { afterAll, beforeAll, expect, it, vi } from "vitest";

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

describeNeeding("frameworks", "an agent of the OpenAI Agents SDK that is published as an environment", () => {
  let platform: Platform;
  let model: ScriptedOpenAi;
  let ref: string;
  beforeAll(async () => {
    // Answers with what it has seen, so that a test sees which conversation it was.
    model = await scriptedOpenAi(({ messages }) => {
      const last = messages.at(-1);
      if (last?.role === "tool") return `${last.text} (${messages.filter(({ role }) => role === "user").length})`;
      return { toolCalls: [{ name: "find_order", arguments: { id: Number(/\d+/.exec(last?.text ?? "")?.[0] ?? 0) } }] };
    });
    platform = await startPlatform();
    const main = { baseUrl: model.baseUrl, name: "m" };
    ref = await publish(platform, join(import.meta.dirname, "fixtures/clerk"), { declaredModels: { main } });
  });
  afterAll(async () => {
    await platform?.close();
    await model?.close();
  });
  const open = () => Environment.create(ref, { controlUrl: platform.controlUrl, dataUrl: platform.dataUrl, models: keyed() });
  const keyed = () => ({ main: { base_url: model.baseUrl, name: "m", api_key: "key-of-the-caller" } });

  it("answers over MCP with its own tools, remembers the conversation, and goes on in forks", async () => {
    await using env = await open();
    expect((await env.callTool("chat", { message: "Where is order 7?" })).text).toBe("Order 7 is on its way. (1)");
    const [fork] = await env.fork(1);
    await using copy = fork as Environment;
    expect((await env.callTool("chat", { message: "And 8?" })).text).toBe("Order 8 is on its way. (2)");
    expect((await copy.callTool("chat", { message: "And 9?" })).text).toBe("Order 9 is on its way. (2)");
    const conversation = model.requests.at(-1)?.messages.map(({ text }) => text);
    expect(conversation).toContain("Where is order 7?");
    expect(conversation).not.toContain("And 8?");
    expect(model.requests.at(-1)?.headers.authorization).toBe("Bearer key-of-the-caller");
  });

  it("answers over A2A through the link of an agent, and keeps the conversation", async () => {
    const { a2a_url: base } = await platform.create(ref);
    const card = await (await fetch(`${base}.well-known/agent-card.json`)).json();
    expect(card).toMatchObject({ description: "Knows about orders." });
    const send = async (text: string, contextId?: string) => {
      const message = { messageId: text, role: "ROLE_USER", parts: [{ text }], ...(contextId !== undefined && { contextId }) };
      const response = await fetch(`${base}a2a`, {
        method: "POST",
        headers: { "content-type": "application/json", "a2a-version": "1.0" },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "SendMessage", params: { message } }),
      });
      return ((await response.json()) as { result: { task: { contextId: string; status: object } } }).result.task;
    };
    const first = await send("Where is order 7?");
    const said = (text: string) => ({ status: { state: "TASK_STATE_COMPLETED", message: { parts: [{ text }] } } });
    expect(first).toMatchObject(said("Order 7 is on its way. (1)"));
    expect(await send("And 8?", first.contextId)).toMatchObject(said("Order 8 is on its way. (2)"));
  });
});
