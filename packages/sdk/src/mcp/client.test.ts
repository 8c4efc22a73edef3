import type { ServerResponse } from "node:http";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { deadUrl, type Handler, httpServer, sendJson, type TestServer } from "../../fixtures/http-server.ts";
import { type PythonSandbox, pythonSandbox } from "../../fixtures/python-sandbox.ts";
import manifest from "../../package.json" with { type: "json" };
import { defaultTransport } from "../transport/node.ts";
import { McpClient, type ToolLog, type ToolProgress } from "./client.ts";
import { type McpOptions, SDK_VERSION } from "./session.ts";

const hello = { content: [{ type: "text", text: "hello" }] };
const limits = { timeoutMs: 10_000 };

function clientFor(url: string, options: Partial<McpOptions> = {}): McpClient {
  const rest = { headers: { "x-own": "1" }, transport: defaultTransport, clock: fakeClock(), maxRetries: 3, maxRequestBytes: 1_000_000 };
  return new McpClient({ url: `${url}/mcp`, ...rest, ...options });
}

/** A server that answers each JSON-RPC request with what `result` gives. */
function rpcServer(result: (params: Record<string, unknown>, method: string) => unknown): Promise<TestServer> {
  return httpServer(({ json }, response) => sendJson(response, { jsonrpc: "2.0", id: json.id, result: result(json.params, json.method) }));
}

function streamServer(write: (response: ServerResponse, id: number) => unknown): Promise<TestServer> {
  return httpServer(({ json }, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    write(response, json.id);
  });
}

function event(message: unknown): string {
  return `event: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", ...(message as object) })}\n\n`;
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe("a tool call", () => {
  it("is one request without a session", async () => {
    await using server = await rpcServer(() => hello);
    expect(await clientFor(server.url).callTool("greet", { name: "Ann" }, limits)).toEqual(hello);
    expect(server.requests).toHaveLength(1);
    expect(server.requests[0]?.json).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "greet", arguments: { name: "Ann" } },
    });
    expect(server.requests[0]?.headers).toMatchObject({
      "x-own": "1",
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      "mcp-protocol-version": "2025-11-25",
    });
  });

  it("reads the result from a stream, with its progress and log lines in order", async () => {
    await using server = await streamServer((response, id) => {
      response.write(": ping\n\n");
      response.write(event({ method: "notifications/progress", params: { progressToken: id, progress: 1, total: 2 } }));
      response.write(event({ method: "notifications/message", params: { level: "info", data: "half way" } }));
      response.end(event({ id, result: hello }));
    });
    const heard: (ToolProgress | ToolLog)[] = [];
    const listen = (one: ToolProgress | ToolLog) => heard.push(one);
    expect(await clientFor(server.url).callTool("greet", {}, { ...limits, onProgress: listen, onLog: listen })).toEqual(hello);
    expect(heard).toEqual([
      { progress: 1, total: 2 },
      { level: "info", data: "half way" },
    ]);
    expect(server.requests[0]?.json.params._meta).toEqual({ progressToken: 1 });
  });

  it("returns before the stream ends, and keeps the connection if the stream ends soon", async () => {
    const ports: unknown[] = [];
    const endings: (() => void)[] = [];
    await using server = await streamServer((response, id) => {
      ports.push(response.socket?.remotePort);
      response.write(event({ id, result: hello }));
      endings.push(() => response.end());
    });
    const client = clientFor(server.url);
    await client.callTool("greet", {}, limits);
    const ended = new Promise((resolve) => setImmediate(resolve));
    endings[0]?.();
    await ended;
    // When the stream's end has arrived, the same connection is used again.
    while (ports.length < 10 && new Set(ports).size === ports.length) {
      await client.callTool("greet", {}, limits);
      endings.at(-1)?.();
    }
    expect(new Set(ports).size).toBeLessThan(ports.length);
  });

  it("answers the server's ping and rejects unsupported requests", async () => {
    const replies = Promise.withResolvers<unknown[]>();
    const heard: unknown[] = [];
    await using server = await httpServer(({ json }, response) => {
      if (json.method === undefined) {
        heard.push(json);
        if (heard.length === 2) replies.resolve(heard);
        return response.writeHead(202).end();
      }
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(event({ id: "p", method: "ping" }));
      response.write(event({ id: "s", method: "sampling/createMessage", params: {} }));
      return response.end(event({ id: json.id, result: hello }));
    });
    await clientFor(server.url).callTool("greet", {}, limits);
    expect(await replies.promise).toEqual(
      expect.arrayContaining([
        { jsonrpc: "2.0", id: "p", result: {} },
        { jsonrpc: "2.0", id: "s", error: { code: -32601, message: "method 'sampling/createMessage' is not supported" } },
      ]),
    );
  });

  it("is not sent again when the stream breaks before the result", async () => {
    await using server = await streamServer((response) => {
      response.write(": ping\n\ndata: {");
      setImmediate(() => response.destroy());
    });
    expect(await failure(clientFor(server.url).callTool("greet", {}, limits))).toMatchObject({ name: "TransportError", wasSent: true });
    expect(server.requests).toHaveLength(1);
  });

  it("is not sent again when the stream ends without the result", async () => {
    await using server = await streamServer((response) => response.end(": ping\n\n"));
    expect(await failure(clientFor(server.url).callTool("greet", {}, limits))).toMatchObject({
      message: "the stream ended before the response",
      wasSent: true,
    });
    expect(server.requests).toHaveLength(1);
  });

  it.each<[string, Handler]>([
    ["hangs up", (_, response) => response.destroy()],
    ["answers 503", (_, response) => response.writeHead(503).end()],
    ["answers 429 with Retry-After", (_, response) => response.writeHead(429, { "retry-after": "0" }).end()],
    ["answers 502", (_, response) => response.writeHead(502).end()],
    ["breaks off its JSON", (_, response) => void response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy())],
  ])("is not sent again when the server %s", async (_, handler) => {
    await using server = await httpServer(handler);
    expect(await failure(clientFor(server.url).callTool("greet", {}, limits))).toBeInstanceOf(Error);
    expect(server.requests).toHaveLength(1);
  });

  it("is sent again when it was certainly not sent", async () => {
    const clock = fakeClock();
    const url = await deadUrl();
    expect(await failure(clientFor(url, { clock }).callTool("greet", {}, limits))).toMatchObject({
      name: "TransportError",
      wasSent: false,
    });
    expect(clock.sleeps).toHaveLength(3);
  });

  it("ends at its timeout, with the connection closed", async () => {
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    await using server = await httpServer((_, response) => response.once("close", resolve));
    const error = await failure(clientFor(server.url).callTool("greet", {}, { timeoutMs: 300 }));
    expect(error).toMatchObject({ name: "TransportError", isTimeout: true });
    await closed;
    expect(server.requests).toHaveLength(1);
  });

  it("rejects with the signal's reason when the caller aborts, and closes the connection", async () => {
    const controller = new AbortController();
    const { promise: closed, resolve } = Promise.withResolvers<void>();
    await using server = await httpServer((_, response) => {
      response.once("close", resolve);
      controller.abort(new Error("enough"));
    });
    const error = await failure(clientFor(server.url).callTool("greet", {}, { ...limits, signal: controller.signal }));
    expect(error).toEqual(new Error("enough"));
    await closed;
  });

  it("is rejected before sending when it is larger than the limit", async () => {
    await using server = await rpcServer(() => hello);
    const client = clientFor(server.url, { maxRequestBytes: 200 });
    expect(await failure(client.callTool("greet", { text: "é".repeat(100) }, limits))).toMatchObject({
      name: "ValidationError",
      code: "request.too_large",
      message: expect.stringContaining("at most 200 may be sent"),
    });
    expect(server.requests).toHaveLength(0);
    await client.callTool("greet", { text: "e".repeat(60) }, limits);
    expect(server.requests).toHaveLength(1);
  });

  it.each([
    ["an empty 200", "", "the response is empty"],
    ["text", "It works!", "the response is not JSON: It works!"],
    ["another request's answer", '{"jsonrpc":"2.0","id":99,"result":{}}', "not a JSON-RPC response to request 1"],
  ])("throws a ProtocolError when the server answers %s", async (_, body, message) => {
    await using server = await httpServer((_, response) => response.writeHead(200, { "content-type": "application/json" }).end(body));
    expect(await failure(clientFor(server.url).callTool("greet", {}, limits))).toMatchObject({
      name: "ProtocolError",
      message: expect.stringContaining(message),
      isEmpty: body === "",
    });
  });

  it("throws a JSON-RPC error with its code and data", async () => {
    const error = { code: -32602, message: "Unknown tool: x", data: { why: "typo" } };
    await using server = await httpServer(({ json }, response) => sendJson(response, { jsonrpc: "2.0", id: json.id, error }));
    expect(await failure(clientFor(server.url).callTool("x", {}, limits))).toMatchObject({ name: "RpcError", ...error });
  });
});

it("sends the version of this package to servers", () => {
  expect(SDK_VERSION).toBe(manifest.version);
});

describe("listing tools", () => {
  it("reads all pages", async () => {
    const page = (at: number) => ({
      tools: [{ name: `t${at}`, inputSchema: { type: "object" } }],
      ...(at < 3 && { nextCursor: `${at + 1}` }),
    });
    await using server = await rpcServer(({ cursor }) => page(Number(cursor ?? 1)));
    expect((await clientFor(server.url).listTools(limits)).map((tool) => tool.name)).toEqual(["t1", "t2", "t3"]);
    expect(server.requests.map(({ json }) => json.params)).toEqual([{}, { cursor: "2" }, { cursor: "3" }]);
  });

  it("is repeated after temporary failures, also within the response", async () => {
    const clock = fakeClock();
    let asked = 0;
    await using server = await httpServer(({ json }, response) => {
      asked++;
      if (asked === 1) return response.destroy();
      if (asked === 2) return response.writeHead(429, { "retry-after": "2" }).end();
      if (asked === 3) return void response.writeHead(200, { "content-length": "99" }).write("{", () => response.destroy());
      return sendJson(response, { jsonrpc: "2.0", id: json.id, result: { tools: [] } });
    });
    expect(await clientFor(server.url, { clock }).listTools(limits)).toEqual([]);
    expect(asked).toBe(4);
    expect(clock.sleeps).toEqual([75, 2_000, 300]);
  });

  it("drops fields that are null", async () => {
    await using server = await rpcServer(() => ({ tools: [{ name: "t", description: null, inputSchema: null }] }));
    expect(await clientFor(server.url).listTools(limits)).toEqual([{ name: "t", inputSchema: { type: "object" } }]);
  });
});

describe("a server that requires a session", () => {
  async function open(): Promise<{ server: TestServer; sandbox: PythonSandbox; client: McpClient }> {
    const sandbox = pythonSandbox();
    const server = await httpServer(sandbox.handle);
    return { server, sandbox, client: clientFor(server.url) };
  }
  const methods = (server: TestServer) => server.requests.map(({ method, json }) => json?.method ?? method);

  it("gets one, and the call runs once", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    const result = await client.callTool("get_weather", { city: "Beijing" }, limits);
    expect(result.structuredContent).toEqual({ city: "Beijing" });
    await client.callTool("get_weather", { city: "Rome" }, limits);
    expect(methods(server)).toEqual(["tools/call", "initialize", "notifications/initialized", "tools/call", "tools/call"]);
    expect(sandbox.ran).toHaveLength(2);
  });

  it("gets one session for concurrent calls", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    await Promise.all(Array.from({ length: 8 }, () => client.callTool("get_weather", { city: "Rome" }, limits)));
    expect(sandbox.sessions.size).toBe(1);
    expect(sandbox.ran).toHaveLength(8);
  });

  it("gets a new one when it has lost the old one, and the call runs once", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    await client.callTool("get_weather", { city: "Rome" }, limits);
    sandbox.sessions.clear();
    await client.callTool("get_weather", { city: "Oslo" }, limits);
    expect(sandbox.ran).toHaveLength(2);
    expect(methods(server).slice(-4)).toEqual(["tools/call", "initialize", "notifications/initialized", "tools/call"]);
  });

  it("is not initialized again when it rejects a new session too", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    await client.callTool("get_weather", { city: "Rome" }, limits);
    sandbox.sessions.add = () => sandbox.sessions;
    sandbox.sessions.clear();
    expect(await failure(client.callTool("get_weather", { city: "Oslo" }, limits))).toMatchObject({ name: "StatusError", status: 404 });
    expect(methods(server).filter((method) => method === "initialize")).toHaveLength(2);
  });

  it("receives the protocol version that it chose", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    sandbox.protocolVersion = "2025-03-26";
    await client.callTool("get_weather", { city: "Rome" }, limits);
    expect(server.requests.at(-1)?.headers["mcp-protocol-version"]).toBe("2025-03-26");
  });

  it("is rejected when it chooses an unsupported version", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    sandbox.protocolVersion = "1999-01-01";
    expect(await failure(client.callTool("get_weather", { city: "Rome" }, limits))).toMatchObject({
      name: "ProtocolError",
      message: expect.stringContaining("1999-01-01"),
    });
    expect(sandbox.ran).toEqual([]);
  });

  it("is notified when a call is aborted, and when the session ends", async () => {
    const { server, sandbox, client } = await open();
    await using _ = server;
    await client.listTools(limits);
    const error = await failure(client.callTool("dawdle", {}, { timeoutMs: 300 }));
    expect(error).toMatchObject({ isTimeout: true });
    const call = server.requests.findLast(({ json }) => json?.method === "tools/call");
    while (sandbox.cancelled.length === 0) await new Promise((resolve) => setImmediate(resolve));
    expect(sandbox.cancelled).toEqual([call?.json.id]);
    await client.close();
    expect(sandbox.sessions.size).toBe(0);
  });
});
