import type { ChatMessage } from "@aenv/contract";
import { type Script, scriptedOpenAi } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ModelHttp } from "../models/http.ts";
import { type Model, modelAgent } from "./model.ts";

const tools = [
  { name: "add", description: "Adds.", inputSchema: { type: "object", properties: { n: { type: "number" } }, required: ["n"] } },
];
const prompt: ChatMessage[] = [{ role: "user", content: "Add 1." }];
const options = { signal: new AbortController().signal };

describe.each([
  ["chat", false],
  ["chat", true],
  ["responses", false],
  ["responses", true],
  ["messages", false],
  ["messages", true],
] as const)("a model behind the API '%s', streamed: %s", (api, streams) => {
  let http: ModelHttp;
  const pauses: number[] = [];
  beforeEach(() => {
    pauses.length = 0;
    http = new ModelHttp({ retries: 2, timeoutMs: 10_000, sleep: async (ms) => pauses.push(ms) });
  });
  afterEach(() => http.close());

  async function begin(script: Script, own: Partial<Model> = {}) {
    const endpoint = await scriptedOpenAi(script);
    const agent = modelAgent({ api, streams, baseUrl: endpoint.baseUrl, apiKey: "k", name: "m", ...own }, http);
    const player = await agent.begin({ task: { id: null, instruction: null }, tools, seed: 5, oracle: async () => null });
    return { endpoint, player };
  }

  it("calls tools and is shown its own messages again", async () => {
    const { endpoint, player } = await begin([{ text: "I will.", toolCalls: [{ name: "add", arguments: { n: 1 } }] }, "done"]);
    await using _ = endpoint;
    const first = await player.next(prompt, options);
    expect(first?.message).toMatchObject({ role: "assistant", content: "I will." });
    const [call] = first?.message.tool_calls ?? [];
    expect(call?.function).toEqual({ name: "add", arguments: '{"n":1}' });
    expect(first?.turn).toMatchObject({ completion_tokens: expect.any(Number), prompt_tokens: expect.any(Number) });
    const answer: ChatMessage = { role: "tool", tool_call_id: call?.id ?? "", content: "1" };
    const second = await player.next([...prompt, first?.message as ChatMessage, answer], options);
    expect(second?.message.content).toBe("done");
    expect(endpoint.refusals).toEqual([]);
    expect(endpoint.requests[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant", "tool"]);
  });

  it("waits while the endpoint is busy, as long as it asks for, and does not count that as a failure", async () => {
    let busy = 4;
    const { endpoint, player } = await begin(() =>
      busy-- > 0 ? { status: 429, message: "slow down", headers: { "retry-after": "3" } } : "done",
    );
    await using _ = endpoint;
    expect((await player.next(prompt, options))?.message.content).toBe("done");
    expect(pauses).toEqual([3_000, 3_000, 3_000, 3_000]);
  });

  it("tries again after a failure of the endpoint, and gives up after so many", async () => {
    let failures = 2;
    const { endpoint, player } = await begin(() => (failures-- > 0 ? { status: 500, message: "overheated" } : "done"));
    await using _ = endpoint;
    expect((await player.next(prompt, options))?.message.content).toBe("done");
    failures = 10;
    await expect(player.next(prompt, options)).rejects.toMatchObject({
      name: "ModelError",
      retryable: true,
      message: expect.stringContaining("overheated"),
    });
  });

  it("does not try again what the endpoint refuses", async () => {
    const { endpoint, player } = await begin([{ status: 404, message: "no such model" }]);
    await using _ = endpoint;
    await expect(player.next(prompt, options)).rejects.toMatchObject({
      retryable: false,
      message: expect.stringContaining("no such model"),
    });
    expect(endpoint.requests).toHaveLength(1);
  });

  it("says so when the conversation is too long, which is a limit of the agent and no failure", async () => {
    const { endpoint, player } = await begin([{ status: 400, message: "This model's maximum context length is 8 tokens." }]);
    await using _ = endpoint;
    await expect(player.next(prompt, options)).rejects.toMatchObject({ name: "LimitReached", stopReason: "context_length" });
  });

  it("is unscored by the model and retryable when nothing listens there", async () => {
    const { endpoint, player } = await begin(["done"]);
    await endpoint.close();
    await expect(player.next(prompt, options)).rejects.toMatchObject({ name: "ModelError", retryable: true });
  });

  it("stops at once when it is cancelled", async () => {
    const cancel = new AbortController();
    const { endpoint, player } = await begin(() => {
      cancel.abort(new Error("enough"));
      return { status: 500, message: "overheated" };
    });
    await using _ = endpoint;
    await expect(player.next(prompt, { signal: cancel.signal })).rejects.toThrow("enough");
    expect(endpoint.requests).toHaveLength(1);
  });
});
