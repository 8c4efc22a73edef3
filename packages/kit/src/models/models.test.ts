import { type ModelCall, PlatformError } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import type { ModelCalls } from "./model.ts";
import { turn } from "./testing/turn.ts";

const parrot = defineEnvironment({
  setup: () => ({ said: "" }),
  tools: [
    {
      name: "ask",
      run: async (_, { model, state }) => {
        const { message, usage } = await model("main").complete({ messages: [{ role: "user", content: "What now?" }], maxTokens: 5 });
        state.said = String(message.content);
        return { said: state.said, tokens: usage.completionTokens };
      },
    },
  ],
  rewards: [{ name: "judged", score: async ({ model }) => (await model("judge").complete({ messages: [] })) && 1 }],
});

let served: Served | undefined;
afterEach(() => served?.close());

async function start(models?: ModelCalls): Promise<(path: string, body: object) => Promise<{ status: number; body: unknown }>> {
  served = await serve(parrot, { name: "parrot", version: "1.0.0", port: 0, writeLog: () => {}, ...(models !== undefined && { models }) });
  const { url } = served;
  return async (path, body) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const response = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: response.status, body: await response.json() };
  };
}

const ask = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "ask", arguments: {} } };

describe("context.model", () => {
  it("sends a conversation to the model of this name and returns what it wrote", async () => {
    const calls: { name: string; call: ModelCall }[] = [];
    const post = await start({
      call: async (_, name, call) => {
        calls.push({ name, call });
        return { message: { role: "assistant", content: "Go north." }, turn };
      },
    });
    expect((await post("/mcp", ask)).body).toMatchObject({ result: { content: [{ text: expect.stringContaining("Go north.") }] } });
    expect(calls).toEqual([{ name: "main", call: { messages: [{ role: "user", content: "What now?" }], tools: [], max_tokens: 5 } }]);
  });

  it("makes the failure of a model an error of the call, never the result of a tool or a score", async () => {
    const fail = () => Promise.reject(new PlatformError("model.failed", "the endpoint is gone"));
    const post = await start({ call: fail });
    expect((await post("/mcp", ask)).body).toMatchObject({ error: { message: expect.stringContaining("the endpoint is gone") } });
    expect(await post("/task/reward", {})).toMatchObject({ status: 502, body: { errorInfo: { code: "model.failed", retryable: true } } });
  });

  it("says what is missing where nothing answers calls of models", async () => {
    const post = await start();
    expect((await post("/mcp", ask)).body).toMatchObject({ error: { message: expect.stringContaining("no models here") } });
  });
});
