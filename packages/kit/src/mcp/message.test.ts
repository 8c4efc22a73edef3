import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { z } from "zod";
import { MODERN_VERSION, parsePlainRequest } from "./message.ts";
import { modernToolCall, toolCall } from "./testing/calls.ts";
import { jsonHeaders, messagesOf } from "./testing/exchange.ts";
import { anyRequest } from "./testing/requests.ts";

const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "add", arguments: { n: 1 } } };

describe("parsePlainRequest", () => {
  it("parses calls and lists of the 2025 revisions", () => {
    expect(parsePlainRequest(jsonHeaders, call)).toEqual({
      id: 1,
      method: "tools/call",
      isModern: false,
      name: "add",
      arguments: { n: 1 },
      progressToken: undefined,
      logLevel: null,
    });
    expect(parsePlainRequest(jsonHeaders, { jsonrpc: "2.0", id: "a", method: "tools/list" })).toMatchObject({
      id: "a",
      method: "tools/list",
    });
    for (const version of ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"]) {
      expect(parsePlainRequest({ ...jsonHeaders, "mcp-protocol-version": version }, call)).toMatchObject({ isModern: false });
    }
    expect(parsePlainRequest(jsonHeaders, { ...call, params: { name: "add", _meta: { progressToken: 5, other: {} } } })).toMatchObject({
      arguments: undefined,
      progressToken: 5,
    });
  });

  it("parses complete envelopes of the 2026 revision", () => {
    const { headers = {}, body } = modernToolCall("add", {}, { "io.modelcontextprotocol/logLevel": "info", progressToken: "p" });
    expect(parsePlainRequest(headers, body)).toMatchObject({ isModern: true, name: "add", logLevel: "info", progressToken: "p" });
  });

  it.each<[string, Record<string, string>, unknown]>([
    ["no object", {}, [call]],
    ["another JSON-RPC", {}, { ...call, jsonrpc: "1.0" }],
    ["no id", {}, { ...call, id: undefined }],
    ["an id that is no id", {}, { ...call, id: null }],
    ["a fraction for an id", {}, { ...call, id: 1.5 }],
    ["an id beyond what a number can hold", {}, { ...call, id: 2 ** 60 }],
    ["another method", {}, { ...call, method: "prompts/list" }],
    ["more than a request has", {}, { ...call, extra: 1 }],
    ["parameters that are no object", {}, { ...call, params: [] }],
    ["more parameters", {}, { ...call, params: { ...call.params, task: {} } }],
    ["a page of a list", {}, { ...call, method: "tools/list", params: { cursor: "x" } }],
    ["no name", {}, { ...call, params: {} }],
    ["arguments that are no object", {}, { ...call, params: { name: "add", arguments: [1] } }],
    ["arguments that reach for a prototype", {}, { ...call, params: { name: "add", arguments: JSON.parse('{"__proto__":1}') } }],
    ["a progress token that is none", {}, { ...call, params: { name: "add", _meta: { progressToken: {} } } }],
    ["an Accept without streams", { accept: "application/json" }, call],
    ["a revision that it does not know", { "mcp-protocol-version": "2030-01-01" }, call],
    ["the 2026 revision without an envelope", { "mcp-protocol-version": MODERN_VERSION }, call],
  ])("leaves the rest to the SDK: %s", (_, headers, body) => {
    expect(parsePlainRequest({ ...jsonHeaders, ...headers }, body)).toBeNull();
  });

  it.each<[string, Record<string, string>, object]>([
    ["another revision in the header", { "mcp-protocol-version": "2025-11-25" }, {}],
    ["another method in the header", { "mcp-method": "tools/list" }, {}],
    ["another name in the header", { "mcp-name": "subtract" }, {}],
    ["another revision in the envelope", {}, { "io.modelcontextprotocol/protocolVersion": "2025-11-25" }],
    ["a client without a version", {}, { "io.modelcontextprotocol/clientInfo": { name: "x" } }],
    ["capabilities with details", {}, { "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } } }],
    ["a level that is none", {}, { "io.modelcontextprotocol/logLevel": "loud" }],
    ["a key of the protocol's that it does not know", {}, { "io.modelcontextprotocol/novelty": 1 }],
  ])("leaves an incomplete or unusual envelope to the SDK: %s", (_, headers, meta) => {
    const { headers: whole = {}, body } = modernToolCall("add", {}, meta);
    expect(parsePlainRequest({ ...whole, ...headers }, body)).toBeNull();
  });

  it("never accepts what the SDK refuses, and detects the same revision as the SDK", async () => {
    const names = ["text", "echo"];
    const handler = createMcpHandler(({ era }) => {
      const server = new McpServer({ name: "judge", version: "1" });
      for (const name of names)
        server.registerTool(name, { inputSchema: z.looseObject({}) }, () => ({ content: [{ type: "text", text: era }] }));
      return server;
    });
    let taken = 0;
    await fc.assert(
      fc.asyncProperty(anyRequest(names), async ({ headers, body }) => {
        const plain = parsePlainRequest(headers, body);
        // Without a JSON content type or a tool of that name the request never reaches the fast path.
        if (plain === null || headers["content-type"] !== "application/json") return;
        if (plain.method === "tools/call" && !names.includes(plain.name)) return;
        taken++;
        const response = await handler.fetch(new Request("http://localhost/mcp", { method: "POST", headers, body: JSON.stringify(body) }));
        expect(response.status).toBe(200);
        const [message] = messagesOf(response.headers.get("content-type") ?? undefined, await response.text());
        expect(message).toMatchObject({ id: plain.id, result: {} });
        const { result } = message as { result: { content?: { text: string }[]; resultType?: string } };
        expect(result.resultType).toBe(plain.isModern ? "complete" : undefined);
      }),
      { numRuns: 500 },
    );
    expect(taken).toBeGreaterThan(100);
    await handler.close();
  });
});

describe("the calls that the tests make", () => {
  it("are plain by default", () => {
    const { headers = {}, body } = toolCall("add");
    expect(parsePlainRequest(headers, body)).not.toBeNull();
    expect(parsePlainRequest(headers, toolCall("add", {}, { isOdd: true }).body)).toBeNull();
  });
});
