import { once } from "node:events";
import { createServer, type IncomingMessage, request as requestOf, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { scriptedOpenAi } from "@aenv/testing";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { ModelError } from "../player/failure.ts";
import type { RecordedToolCall } from "./mcp.ts";
import type { RecordedExchange } from "./model.ts";
import { RecordingServer, type UpstreamModel } from "./server.ts";

/** An HTTP server on loopback that answers as the test says. */
async function endpointOf(answer: (request: IncomingMessage, response: ServerResponse, body: string) => void) {
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    answer(request, response, body);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const close = async () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, [Symbol.asyncDispose]: close };
}

const echoCall = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hi" } } };
const echoResult = { content: [{ type: "text", text: "hi" }] };
const echoed: RecordedToolCall = { name: "echo", arguments: { text: "hi" }, result: echoResult };

let recorder: RecordingServer;
let calls: RecordedToolCall[];
let exchanges: RecordedExchange[];
let failures: (ModelError | null)[];
let pauses: number[];
beforeEach(async () => {
  recorder = await RecordingServer.open({ onBusy: (pauseMs) => pauses.push(pauseMs) });
  calls = [];
  exchanges = [];
  failures = [];
  pauses = [];
});
afterEach(() => recorder.close());

function record({ instanceUrl = "http://127.0.0.1:9/mcp", model = null as UpstreamModel | null, begin = () => {} } = {}) {
  return recorder.record({
    instanceUrl,
    model,
    onToolCall: { begin, end: (call) => calls.push(call) },
    onExchange: { begin, end: (exchange) => exchanges.push(exchange), fail: (error) => failures.push(error) },
  });
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, { method: "POST", headers: { "content-type": "application/json", ...headers }, body: JSON.stringify(body) });
}

describe("a recorded tool call", () => {
  it.each([
    ["JSON", "application/json", JSON.stringify({ jsonrpc: "2.0", id: 1, result: echoResult })],
    [
      "a stream of events",
      "text/event-stream",
      `: ping\n\nevent: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: echoResult })}\n\n`,
    ],
  ])("is passed on and its result back unchanged, as %s", async (_, type, answer) => {
    const seen: unknown[] = [];
    await using instance = await endpointOf((request, response, body) => {
      seen.push(JSON.parse(body), request.headers["mcp-session-id"]);
      response.writeHead(200, { "content-type": type, "mcp-session-id": "s2" }).end(answer);
    });
    const { agentUrl } = record({ instanceUrl: `${instance.url}/mcp` });
    const response = await post(agentUrl, echoCall, { "mcp-session-id": "s1" });
    expect(response.headers.get("mcp-session-id")).toBe("s2");
    expect(await response.text()).toBe(answer);
    expect(seen).toEqual([echoCall, "s1"]);
    expect(calls).toEqual([echoed]);
  });

  it("is recorded when the program can read its result, though the stream stays open", async () => {
    const event = `data: ${JSON.stringify({ jsonrpc: "2.0", id: 1, result: echoResult })}\n\n`;
    await using instance = await endpointOf((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write(event);
    });
    const { agentUrl, close } = record({ instanceUrl: instance.url });
    const reader = (await post(agentUrl, echoCall)).body?.getReader();
    await reader?.read();
    expect(calls).toEqual([echoed]);
    await reader?.cancel();
    await close();
    expect(calls).toEqual([echoed]);
  });

  it("that the protocol refuses is recorded as an error with its message", async () => {
    await using instance = await endpointOf((_, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32602, message: "no such tool" } })),
    );
    await (await post(record({ instanceUrl: instance.url }).agentUrl, echoCall)).text();
    expect(calls).toMatchObject([{ name: "echo", result: { isError: true, content: [{ text: "no such tool" }] } }]);
  });

  it("of an instance that is gone is answered 502 and recorded without a result", async () => {
    const instance = await endpointOf(() => {});
    await instance[Symbol.asyncDispose]();
    const response = await post(record({ instanceUrl: instance.url }).agentUrl, echoCall);
    expect(response.status).toBe(502);
    expect(await response.text()).toContain("could not pass the request on");
    expect(calls).toEqual([{ ...echoed, result: null, isLost: true }]);
  });

  it("is refused, and never reaches the instance, when a limit is reached", async () => {
    let requests = 0;
    await using instance = await endpointOf((_, response) => {
      requests++;
      response.end();
    });
    const begin = () => {
      throw new Error("the agent has made its 2 tool calls");
    };
    const { agentUrl } = record({ instanceUrl: instance.url, begin });
    const response = await post(agentUrl, echoCall);
    expect(await response.text()).toContain("the agent has made its 2 tool calls");
    expect(requests).toBe(0);
    expect(calls).toEqual([]);
    await (await post(agentUrl, { jsonrpc: "2.0", id: 2, method: "tools/list" })).text();
    expect(requests).toBe(1);
  });

  it("that is under way when the episode ends is ended and recorded without a result", async () => {
    const arrived = Promise.withResolvers<void>();
    await using instance = await endpointOf(() => arrived.resolve());
    const { agentUrl, close } = record({ instanceUrl: instance.url });
    const pending = expect(post(agentUrl, echoCall)).rejects.toThrow();
    await arrived.promise;
    await close();
    expect(calls).toEqual([{ ...echoed, result: null }]);
    await pending;
  });
});

describe("a recorded exchange with a model", () => {
  const request = { model: "m", messages: [{ role: "user", content: "Hi." }] };

  it.each([false, true])("is passed on with the key of the endpoint and recorded; streamed: %s", async (stream) => {
    await using endpoint = await scriptedOpenAi(["A rather long answer, in pieces."]);
    const { openaiUrl, modelKey } = record({ model: { baseUrl: `${endpoint.baseUrl}/`, apiKey: "real" } });
    const response = await post(`${openaiUrl}/chat/completions`, { ...request, stream }, { authorization: `Bearer ${modelKey}` });
    const text = await response.text();
    expect(text).not.toContain("real");
    expect(response.headers.get("content-type")).toContain(stream ? "event-stream" : "json");
    expect(endpoint.requests[0]).toMatchObject({ body: { ...request, stream }, headers: { authorization: "Bearer real" } });
    expect(exchanges).toMatchObject([
      {
        seen: { messages: request.messages, tools: [] },
        continues: null,
        written: { message: { content: "A rather long answer, in pieces." }, turn: { finish_reason: "stop" } },
      },
    ]);
  });

  it("is recorded when the client leaves after the last event, before the endpoint closes the stream", async () => {
    await using endpoint = await endpointOf((_, response) => {
      const chunk = { id: "c", choices: [{ index: 0, delta: { content: "Done." }, finish_reason: "stop" }] };
      response.writeHead(200, { "content-type": "text/event-stream" }).write(`data: ${JSON.stringify(chunk)}\n\ndata: [DONE]\n\n`);
    });
    const { openaiUrl, close } = record({ model: { baseUrl: endpoint.url, apiKey: "real" } });
    const response = await post(`${openaiUrl}/chat/completions`, { ...request, stream: true });
    const reader = response.body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await close();
    expect(exchanges).toMatchObject([{ written: { message: { content: "Done." } } }]);
  });

  it.each([
    [
      "that breaks off",
      (response: ServerResponse) => response.write('data: {"choices":[{"delta":{"content":"Do', () => response.destroy()),
    ],
    ["that is no chat completion", (response: ServerResponse) => response.end("data: {}\n\n")],
  ])("%s is not recorded, and told as a failure of the endpoint", async (_, answer) => {
    await using endpoint = await endpointOf((_request, response) => {
      answer(response.writeHead(200, { "content-type": "text/event-stream" }));
    });
    const { openaiUrl } = record({ model: { baseUrl: endpoint.url, apiKey: "real" } });
    await post(`${openaiUrl}/chat/completions`, { ...request, stream: true })
      .then((response) => response.text())
      .catch(() => {});
    expect([exchanges, failures]).toEqual([[], [expect.objectContaining({ name: "ModelError", retryable: true })]]);
  });

  it("that the client leaves in the middle of its answer is neither recorded nor a failure of the endpoint", async () => {
    await using endpoint = await endpointOf((_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).write('data: {"choices":[{"delta":{"content":"Do"}}]}\n\n');
    });
    const { openaiUrl, close } = record({ model: { baseUrl: endpoint.url, apiKey: "real" } });
    const reader = (await post(`${openaiUrl}/chat/completions`, { ...request, stream: true })).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await close();
    expect([exchanges, failures]).toEqual([[], [null]]);
  });

  it("for which the client waits in vain is a failure of the endpoint", async () => {
    const arrived = Promise.withResolvers<void>();
    await using endpoint = await endpointOf(() => arrived.resolve());
    const { openaiUrl, close } = record({ model: { baseUrl: endpoint.url, apiKey: "real" } });
    const leave = new AbortController();
    const asked = fetch(`${openaiUrl}/chat/completions`, { method: "POST", body: JSON.stringify(request), signal: leave.signal });
    await arrived.promise;
    leave.abort();
    await expect(asked).rejects.toThrow();
    await close();
    expect(failures).toMatchObject([{ name: "ModelError", retryable: true, message: expect.stringContaining("had not answered") }]);
  });

  it("that is refused because the endpoint is busy is passed back with its status, and the caller is told the pause", async () => {
    await using endpoint = await scriptedOpenAi([{ status: 429, message: "slow down", headers: { "retry-after": "3" } }]);
    const { openaiUrl } = record({ model: { baseUrl: endpoint.baseUrl, apiKey: "real" } });
    const response = await post(`${openaiUrl}/chat/completions`, request);
    expect([response.status, response.headers.get("retry-after")]).toEqual([429, "3"]);
    expect(exchanges).toEqual([]);
    expect(failures).toMatchObject([{ name: "ModelError", retryable: true }]);
    expect(pauses).toEqual([3_000]);
  });

  it.each([
    [400, null],
    [401, { retryable: false }],
    [404, { retryable: false }],
    [500, { retryable: true }],
  ])("that is refused with %i is a failure of the endpoint unless the request is wrong: %j", async (status, failure) => {
    await using endpoint = await scriptedOpenAi([{ status, message: "no" }]);
    const { openaiUrl } = record({ model: { baseUrl: endpoint.baseUrl, apiKey: "real" } });
    await (await post(`${openaiUrl}/chat/completions`, request)).text();
    expect(failures).toEqual([failure === null ? null : expect.objectContaining({ name: "ModelError", ...failure })]);
    expect([exchanges, pauses]).toEqual([[], []]);
  });

  it("in Anthropic's API has its own header for the key, and keeps the query", async () => {
    const seen: unknown[] = [];
    await using endpoint = await endpointOf((asked, response) => {
      seen.push(asked.url, asked.headers["x-api-key"], asked.headers.authorization);
      const message = {
        id: "msg",
        type: "message",
        role: "assistant",
        content: [{ type: "text", text: "Done." }],
        stop_reason: "end_turn",
      };
      response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(message));
    });
    const { anthropicUrl, modelKey } = record({ model: { baseUrl: `${endpoint.url}/v1`, apiKey: "real" } });
    await (await post(`${anthropicUrl}/v1/messages?beta=true`, request, { "x-api-key": modelKey })).text();
    expect(seen).toEqual(["/v1/messages?beta=true", "real", undefined]);
    expect(exchanges).toMatchObject([{ seen: { messages: request.messages }, written: { message: { content: "Done." } } }]);
  });
});

describe("requests of a program with the key of the model", () => {
  /** As it is: `fetch` would normalise the path. */
  async function raw(base: string, method: string, path: string, headers: Record<string, string> = {}) {
    const { hostname, port, pathname } = new URL(base);
    const asked = requestOf({ hostname, port, method, path: `${pathname}${path}`, headers }).end();
    const [response] = (await once(asked, "response")) as [IncomingMessage];
    let text = "";
    for await (const piece of response) text += piece;
    return { status: response.statusCode, body: JSON.parse(text || "null") };
  }

  async function openModel() {
    const seen: string[] = [];
    const endpoint = await endpointOf((asked, response) => {
      seen.push(`${asked.method} ${asked.url}`);
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
    const { openaiUrl } = record({ model: { baseUrl: `${endpoint.url}/v1`, apiKey: "real" } });
    return { seen, base: openaiUrl ?? "", [Symbol.asyncDispose]: endpoint[Symbol.asyncDispose] };
  }

  it.each([
    ["DELETE", "/files/f1"],
    ["GET", "/files"],
    ["GET", "/../admin/keys"],
    ["POST", "/../admin/keys"],
    ["GET", "/models/../../admin/keys"],
    ["GET", "/models/..%2f..%2fadmin/keys"],
    ["GET", "/models//admin"],
    ["DELETE", "/models/m"],
    ["GET", "/chat/completions"],
    ["POST", "/chat/completions/c1"],
    ["POST", "/chat/completions/"],
    ["POST", "/messages/batches"],
    ["POST", "/messages/../files"],
    ["POST", "/%6dessages"],
    ["GET", "/responses/r1"],
    ["POST", "/v1/chat/completions"],
    ["POST", "/embeddings"],
  ])("are not forwarded if an agent does not need them: %s %s", async (method, path) => {
    await using model = await openModel();
    const { status, body } = await raw(model.base, method, path);
    expect([status, body.error.message]).toEqual([403, expect.stringContaining("is not forwarded to the model")]);
    expect(model.seen).toEqual([]);
  });

  it("are refused as the API of the client writes errors", async () => {
    await using model = await openModel();
    const refused = await Promise.all([
      raw(model.base, "POST", "/messages/batches"),
      raw(model.base, "GET", "/files", { "anthropic-version": "2023-06-01" }),
      raw(model.base, "GET", "/files"),
    ]);
    const anthropic = { type: "error", error: { type: "permission_error" } };
    expect(refused.map(({ body }) => body)).toMatchObject([anthropic, anthropic, { error: { code: "request_not_allowed" } }]);
  });

  it("are refused with 413 if they do not end, and not forwarded", async () => {
    await using model = await openModel();
    const { hostname, port, pathname } = new URL(model.base);
    const asked = requestOf({ hostname, port, method: "POST", path: `${pathname}/messages` }).on("error", () => {});
    const answered = once(asked, "response") as Promise<[IncomingMessage]>;
    const piece = Buffer.alloc(1_024 ** 2, " ");
    const send = () => {
      while (!asked.destroyed && asked.write(piece));
    };
    asked.on("drain", send);
    send();
    const [{ statusCode }] = await answered;
    asked.destroy();
    expect(statusCode).toBe(413);
    expect(model.seen).toEqual([]);
  });

  it("are forwarded if agents need them", async () => {
    await using model = await openModel();
    for (const path of ["/chat/completions", "/completions", "/responses", "/messages", "/messages/count_tokens?beta=true"])
      expect((await raw(model.base, "POST", path)).status).toBe(200);
    for (const path of ["/models", "/models/org/name-1.5:free"]) expect((await raw(model.base, "GET", path)).status).toBe(200);
    expect(model.seen).toHaveLength(7);
  });
});

describe("the addresses of an episode", () => {
  it("are unknown to others, and end with the episode", async () => {
    const { agentUrl, openaiUrl, anthropicUrl, modelKey, close } = record();
    expect([openaiUrl, anthropicUrl]).toEqual([null, null]);
    expect((await post(agentUrl.replace(modelKey, "0".repeat(32)), echoCall)).status).toBe(404);
    const withoutModel = await post(agentUrl.replace(/mcp$/, "v1/chat/completions"), {});
    expect([withoutModel.status, await withoutModel.text()]).toEqual([404, expect.stringContaining("this run has no model")]);
    await close();
    const ended = await post(agentUrl, echoCall);
    expect([ended.status, await ended.text()]).toEqual([404, expect.stringContaining("no episode has this address")]);
    expect(calls).toEqual([]);
  });
});
