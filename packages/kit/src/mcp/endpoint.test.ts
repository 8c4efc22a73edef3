import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment } from "../definition/definition.ts";
import { type Served, type ServeOptions, serve } from "../serve/serve.ts";
import { callTool, modernToolCall, toolCall } from "./testing/calls.ts";
import { exchange, jsonHeaders } from "./testing/exchange.ts";

const environment = defineEnvironment({
  setup: () => ({ total: 0 }),
  tools: [
    {
      name: "add",
      description: "Adds to the total.",
      input: z.object({ n: z.number(), note: z.object({ tags: z.array(z.string()) }).optional() }),
      output: z.object({ total: z.number() }),
      run: ({ n }, { state }) => {
        state.total += n;
        return { total: state.total };
      },
    },
    {
      name: "break",
      run: () => {
        throw new Error("broken lever");
      },
    },
    {
      name: "count",
      run: (_, { log, progress }) => {
        for (let n = 1; n <= 3; n++) progress(n, 3);
        log("warning", "that was all");
        return "counted";
      },
    },
    {
      name: "misjudge",
      input: z.object({
        n: z.number().refine(() => {
          throw new Error("the check itself is broken");
        }),
      }),
      run: () => "never",
    },
  ],
});

const open: Served[] = [];

async function start(options: ServeOptions = {}): Promise<string> {
  const served = await serve(environment, { name: "till", version: "2.0.0", port: 0, writeLog: () => {}, ...options });
  open.push(served);
  return `${served.url}/mcp`;
}

afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

describe("a failing tool", () => {
  it("is a result with the message and no stack", async () => {
    expect(await callTool(await start(), "break")).toEqual({ content: [{ type: "text", text: "broken lever" }], isError: true });
  });

  it("says which field of its arguments is wrong", async () => {
    const result = await callTool(await start(), "add", { n: "3", note: { tags: [1] } });
    expect(result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/tool add: n: .*, note\.tags\.0: /) }] });
  });

  it("is a result too when it is the check of its arguments that throws", async () => {
    const url = await start();
    expect(await callTool(url, "misjudge", { n: 1 })).toEqual({
      content: [{ type: "text", text: "the check itself is broken" }],
      isError: true,
    });
    expect(await callTool(url, "add", { n: 1 })).toMatchObject({ structuredContent: { total: 1 } });
  });
});

describe("an invalid request", () => {
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" };

  it.each([
    ["malformed JSON", { headers: jsonHeaders, body: '{"jsonrpc":' }, 400, -32700],
    ["an empty body", { headers: jsonHeaders, body: "" }, 400, -32700],
    ["JSON of more than 200 levels", { headers: jsonHeaders, body: `${"[".repeat(5_000)}${"]".repeat(5_000)}` }, 400, -32600],
    ["JSON that is not a message", { headers: jsonHeaders, body: [1, 2] }, 400, -32600],
    ["another content type", { headers: { ...jsonHeaders, "content-type": "text/plain" }, body: ping }, 415, -32000],
    ["no content type", { headers: { accept: jsonHeaders.accept }, body: ping }, 415, -32000],
    ["an Accept that leaves out streams", { headers: { ...jsonHeaders, accept: "application/json" }, body: ping }, 406, -32000],
    ["an unknown revision", { headers: { ...jsonHeaders, "mcp-protocol-version": "1999-01-01" }, body: ping }, 400, -32000],
    ["another method", { method: "PUT", headers: jsonHeaders, body: ping }, 405, -32000],
    ["GET without a session", { method: "GET", headers: { accept: "text/event-stream" } }, 405, -32000],
    ["an unknown tool", toolCall("subtract"), 200, -32602],
    ["an unknown tool in the 2026 revision", modernToolCall("subtract"), 200, -32602],
    ["an unknown method", { headers: jsonHeaders, body: { ...ping, method: "tools/sharpen" } }, 200, -32601],
  ])("gets the protocol's error: %s", async (_, request, status, code) => {
    const url = await start();
    expect(await exchange(url, request)).toMatchObject({ status, messages: [{ jsonrpc: "2.0", error: { code } }] });
    expect(await callTool(url, "add", { n: 1 })).toMatchObject({ structuredContent: { total: 1 } });
  });

  it("gets 413 when it is too large, and the server keeps running", async () => {
    const url = await start({ maxBodyBytes: 1_000 });
    const large = toolCall("add", { n: 1, more: "x".repeat(2_000) });
    expect(await exchange(url, large)).toMatchObject({ status: 413, headers: { connection: "close" }, messages: [{ id: null }] });
    expect(await callTool(url, "add", { n: 1 })).toMatchObject({ structuredContent: { total: 1 } });
  });
});

describe("the official client", () => {
  it.each([
    ["2025-11-25", "legacy"],
    ["2026-07-28", { pin: "2026-07-28" }],
    ["2026-07-28", "auto"],
  ] as const)("lists and calls by revision %s (mode %j)", async (revision, mode) => {
    const url = await start();
    const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    try {
      expect(client.getNegotiatedProtocolVersion()).toBe(revision);
      expect(client.getServerVersion()).toMatchObject({ name: "till", version: "2.0.0" });
      const { tools } = await client.listTools();
      expect(tools.map((tool) => tool.name)).toEqual(["add", "break", "count", "misjudge"]);
      expect(await client.callTool({ name: "add", arguments: { n: 2 } })).toMatchObject({ structuredContent: { total: 2 } });
      expect(await client.callTool({ name: "break" })).toMatchObject({ isError: true });
      await expect(client.callTool({ name: "subtract" })).rejects.toThrow("Tool subtract not found");
      const heard: number[] = [];
      const counted = await client.callTool({ name: "count" }, { onprogress: ({ progress }) => heard.push(progress) });
      expect(counted).toMatchObject({ content: [{ text: "counted" }] });
      expect(heard).toEqual([1, 2, 3]);
    } finally {
      await client.close();
    }
  });
});
