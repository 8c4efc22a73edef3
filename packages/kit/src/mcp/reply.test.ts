import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type Log } from "../definition/definition.ts";
import { type Served, type ServeOptions, serve } from "../serve/serve.ts";
import { callTool, modernToolCall, resultOf, sessionMessage, toolCall } from "./testing/calls.ts";
import { converse, exchange, openSession } from "./testing/exchange.ts";
import { gate } from "./testing/gate.ts";

const wait = gate();
let keptLog: Log | undefined;

const environment = defineEnvironment({
  tools: [
    wait.tool,
    { name: "quick", run: () => "at once" },
    { name: "soon", run: async () => "soon" },
    {
      name: "tell",
      input: z.object({ levels: z.array(z.enum(["debug", "info", "warning", "error"])).default(["debug", "info", "warning", "error"]) }),
      run: ({ levels }, { log, progress }) => {
        progress(1, 2, "half");
        for (const level of levels) log(level, { heard: level });
        progress(2);
        return "told";
      },
    },
    {
      name: "keep_talking",
      run: (_, { log }) => {
        keptLog = log;
        return "the end";
      },
    },
    {
      name: "tell_nonsense",
      run: (_, { log, progress }) => {
        log("info", { at: new Map([["page", 2n]]) });
        log("info", { visit: () => 1 });
        log("info", new Error("no such page"));
        progress(1n as never);
        return "told";
      },
    },
    { name: "too_slow", timeoutMs: 1, run: (_, { signal }) => new Promise((resolve) => signal.addEventListener("abort", resolve)) },
  ],
});

const open: Served[] = [];

async function start(options: ServeOptions = {}): Promise<string> {
  const served = await serve(environment, { port: 0, writeLog: () => {}, ...options });
  open.push(served);
  return `${served.url}/mcp`;
}

afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

const said = (messages: readonly unknown[]) =>
  messages.map((message) => {
    const { method, params } = message as { method?: string; params?: { data?: { heard: string }; progress?: number } };
    return method === undefined ? "result" : (params?.data?.heard ?? params?.progress);
  });

describe("a short call", () => {
  it.each(["quick", "soon"])("is answered as JSON (%s)", async (name) => {
    const answer = await exchange(await start(), toolCall(name));
    expect(answer.headers["content-type"]).toBe("application/json");
    expect(answer.headers["content-length"]).toBe(String(answer.text.length));
    expect(resultOf(answer).content).toHaveLength(1);
  });
});

describe("a long call", () => {
  it("is answered as a stream with pings until the result", async () => {
    const url = await start({ streamAfterMs: 1, pingMs: 2 });
    const stream = await converse(url, toolCall("wait"));
    expect(stream.headers["content-type"]).toBe("text/event-stream");
    expect(stream.headers["cache-control"]).toContain("no-cache");
    for (let pings = 0; pings < 3; pings++) expect(await stream.next()).toBe(": ping");
    await wait.entered();
    wait.open("at last");
    let block = await stream.next();
    while (block === ": ping") block = await stream.next();
    expect(block).toMatch(/^event: message\ndata: \{"result":\{"content":\[\{"type":"text","text":"at last"\}\]\}/);
    expect(await stream.next()).toBeNull();
  });

  it("is kept alive on the SDK's path too", async () => {
    const url = await start({ pingMs: 2 });
    const stream = await converse(url, toolCall("wait", {}, { isOdd: true }));
    expect(await stream.next()).toMatch(/^:/);
    await wait.entered();
    wait.open("at last");
    let block = await stream.next();
    while (block?.startsWith(":") === true) block = await stream.next();
    expect(block).toContain("at last");
  });

  it("is ended by the tool's own timeout", async () => {
    expect(await callTool(await start(), "too_slow")).toEqual({
      content: [{ type: "text", text: "tool 'too_slow' timed out after 1 ms" }],
      isError: true,
    });
  });
});

describe("a notification of a running tool", () => {
  it("is sent before the result, in order", async () => {
    const { messages, headers } = await exchange(await start(), toolCall("tell", {}, { meta: { progressToken: "p" } }));
    expect(headers["content-type"]).toBe("text/event-stream");
    expect(said(messages)).toEqual([1, "debug", "info", "warning", "error", 2, "result"]);
    expect(messages[0]).toEqual({
      jsonrpc: "2.0",
      method: "notifications/progress",
      params: { progressToken: "p", progress: 1, total: 2, message: "half" },
    });
    expect(messages[1]).toEqual({ jsonrpc: "2.0", method: "notifications/message", params: { level: "debug", data: { heard: "debug" } } });
  });

  it("is not sent for progress that the client did not request", async () => {
    expect(said((await exchange(await start(), toolCall("tell"))).messages)).toEqual(["debug", "info", "warning", "error", "result"]);
  });

  it("is sent from the log level of the session on", async () => {
    const url = await start();
    const [one, other] = [await openSession(url), await openSession(url)];
    await exchange(url, sessionMessage(one, { id: 1, method: "logging/setLevel", params: { level: "warning" } }));
    expect(said((await exchange(url, toolCall("tell", {}, { sessionId: one }))).messages)).toEqual(["warning", "error", "result"]);
    expect(said((await exchange(url, toolCall("tell", {}, { sessionId: other }))).messages)).toHaveLength(5);
  });

  it("is sent in the 2026 revision only for a request that names a level", async () => {
    const url = await start();
    const silent = await exchange(url, modernToolCall("tell"));
    expect(said(silent.messages)).toEqual(["result"]);
    expect(silent.headers["content-type"]).toBe("application/json");
    const meta = { "io.modelcontextprotocol/logLevel": "warning" };
    expect(said((await exchange(url, modernToolCall("tell", {}, meta))).messages)).toEqual(["warning", "error", "result"]);
  });

  it("is ignored after the result", async () => {
    const url = await start();
    expect(await callTool(url, "keep_talking")).toMatchObject({ content: [{ text: "the end" }] });
    keptLog?.("info", "one more thing");
    expect(await callTool(url, "quick")).toMatchObject({ content: [{ text: "at once" }] });
  });

  it.each([true, false])("is described if it has no JSON form, and the call goes on (fast path: %s)", async (useFastPath) => {
    const { messages } = await exchange(await start({ useFastPath }), toolCall("tell_nonsense"));
    const logs = messages.filter((one) => (one as { method?: string }).method === "notifications/message");
    expect(logs.map((one) => (one as { params: { data: unknown } }).params.data)).toEqual([
      { at: { page: "2" } },
      "the log message cannot be written as JSON: visit is a function",
      "Error: no such page",
    ]);
    expect(JSON.stringify(messages.at(-1))).toContain("told");
  });
});
