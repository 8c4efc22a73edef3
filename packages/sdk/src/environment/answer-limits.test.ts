import type { ServerResponse } from "node:http";
import { instanceRoutes } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import { type Handler, httpServer, sendJson } from "../../fixtures/http-server.ts";
import { AnswerLimitError } from "../errors/errors.ts";
import type { Transport } from "../http/http.ts";
import { fetchTransport } from "../transport/fetch.ts";
import { defaultTransport } from "../transport/node.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

const MAX = 256 * 1024;

const transports = [
  ["undici", defaultTransport],
  ["fetch", fetchTransport((url, init) => fetch(url, init))],
] as const;

/** Sends for as long as somebody reads. Resolves with the number of bytes when the connection is closed. */
function pour(response: ServerResponse, piece: string): Promise<number> {
  return new Promise((resolve) => {
    let sent = 0;
    response.once("close", () => resolve(sent));
    const more = () => {
      while (!response.destroyed) {
        sent += piece.length;
        if (!response.write(piece)) return void response.once("drain", more);
      }
    };
    more();
  });
}

async function used<T>(handler: Handler, options: EnvironmentOptions, work: (env: Environment) => Promise<T>) {
  await using server = await httpServer(handler);
  const env = new Environment("hostile@1.0.0", { instanceUrl: server.url, skipHealthCheck: true, maxAnswerBytes: MAX, ...options });
  try {
    const error = await work(env).then(
      () => null,
      (failure: unknown) => failure,
    );
    return { error, url: server.url, requests: server.requests };
  } finally {
    await env.release();
  }
}

describe.each(transports)("an answer without an end, by %s", (_, transport) => {
  it("is given up at the limit: its connection is closed, the error names URL and limit, and it is not requested again", async () => {
    const sent: Promise<number>[] = [];
    const { error, url, requests } = await used(
      (_, response) => sent.push(pour(response.writeHead(200), "x".repeat(64 * 1024))),
      { transport },
      (env) => env.listFunctions(),
    );
    expect(error).toBeInstanceOf(AnswerLimitError);
    expect(error).toMatchObject({
      code: "sandbox.answer_too_large",
      retryable: false,
      message: `GET ${url}${instanceRoutes.listFunctions.path}: the answer was not read: it is larger than ${MAX} bytes, the client's limit (maxAnswerBytes)`,
    });
    expect(requests).toHaveLength(1);
    // What sockets buffer comes on top.
    expect(await sent[0]).toBeLessThan(MAX + 16 * 1024 ** 2);
  });

  it("leaves an error its status and code, whatever the length of its text", async () => {
    const { error, requests } = await used(
      (_, response) => void pour(response.writeHead(404), "x".repeat(64 * 1024)),
      { transport },
      (env) => env.tasks(),
    );
    expect(error).toMatchObject({ code: "instance.unsupported", message: expect.stringContaining("more than 1048576 bytes") });
    expect(requests).toHaveLength(1);
  });

  it("is refused before it is read if it announces its length", async () => {
    const { error } = await used(
      (_, response) => void response.writeHead(200, { "content-length": 10 * MAX }).write("{"),
      { transport },
      (env) => env.listFunctions(),
    );
    expect(error).toBeInstanceOf(AnswerLimitError);
  });
});

describe("a tool's answer", () => {
  const stream = { "content-type": "text/event-stream" };
  const call = (handler: Handler) => used(handler, {}, (env) => env.callTool("search", {}));
  const tooLarge = { code: "sandbox.answer_too_large", toolName: "search" };

  it.each([
    ["an event without an end", `data: ${"x".repeat(64 * 1024)}`],
    ["a data field for each line, without an end", "data:\n".repeat(10_000)],
    ["messages without an end", `data: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n`.repeat(1_000)],
  ])("is given up at the limit if it is a stream with %s", async (_, piece) => {
    const { error, requests } = await call((_, response) => void pour(response.writeHead(200, stream), piece));
    expect(error).toMatchObject(tooLarge);
    expect(requests).toHaveLength(1);
  });

  it("may have one short message for 512 bytes of the limit", async () => {
    const message = 'data: {"method":"m"}\n\n';
    const { error } = await call((_, response) => void response.writeHead(200, stream).end(message.repeat(MAX / 512 + 1)));
    expect(error).toMatchObject({ ...tooLarge, message: expect.stringContaining("more than 512 messages") });
  });

  it("is refused if its JSON is nested deeper than 200 levels", async () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const { error } = await call((_, response) => void response.end(`{"jsonrpc":"2.0","id":1,"result":${deep}}`));
    expect(error).toMatchObject({ ...tooLarge, message: expect.stringContaining("nested deeper than 200 levels") });
  });

  it("cannot make the client answer more than 16 requests of the server at a time", async () => {
    let replies = 0;
    const transport: Transport = {
      send(request) {
        if (String(request.body).includes('"id":"p"')) replies++;
        return defaultTransport.send(request);
      },
    };
    const handler: Handler = ({ json }, response) => {
      if (json.method !== "tools/call") return;
      const ping = `data: {"jsonrpc":"2.0","id":"p","method":"ping"}\n\n`;
      response.writeHead(200, stream).write(ping.repeat(1_000));
      response.end(`data: {"jsonrpc":"2.0","id":${json.id},"result":{"content":[]}}\n\n`);
    };
    const { error } = await used(handler, { transport, maxAnswerBytes: 4 * MAX }, (env) => env.callTool("search", {}));
    expect(error).toBeNull();
    expect(replies).toBe(16);
  });
});

describe("a list", () => {
  const page = (tools: object[]) => (seen: { json: { id: number } }, response: ServerResponse) =>
    sendJson(response, { jsonrpc: "2.0", id: seen.json.id, result: { tools, nextCursor: "more" } });

  it("of tools may have 10,000 of them", async () => {
    const { error } = await used(page(Array(600).fill({ name: "t" })), {}, (env) => env.listTools());
    expect(error).toMatchObject({ message: expect.stringContaining("more than 10000 tools") });
  });

  it("of tools has the limit of one answer for all its pages", async () => {
    const { error, requests } = await used(page([{ name: "t", description: "x".repeat(100_000) }]), {}, (env) => env.listTools());
    expect(error).toMatchObject({ code: "sandbox.answer_too_large" });
    expect(requests).toHaveLength(3);
  });

  it("of tasks has the limit of one answer for all its pages", async () => {
    const items = [{ id: "a", instruction: "x".repeat(100_000) }];
    const { error, requests } = await used(
      (_, response) => sendJson(response, { success: true, data: { items, total: 1e9 } }),
      {},
      (env) => env.tasks(),
    );
    expect(error).toMatchObject({ code: "sandbox.answer_too_large" });
    expect(requests).toHaveLength(3);
  });

  it("of tasks has at most 2,000 pages", async () => {
    const { error, requests } = await used(
      (_, response) => sendJson(response, { success: true, data: { items: [{ id: "a" }], total: 1e9 } }),
      {},
      (env) => env.tasks(),
    );
    expect(error).toMatchObject({ code: "sandbox.answer_too_large", message: expect.stringContaining("more than 2000 messages") });
    expect(requests).toHaveLength(2_000);
  });

  it("of more values than maxAnswerValues is refused before its shape is checked", async () => {
    const items = [{ id: "a", splits: Array(2_000).fill(0) }];
    const answer: Handler = (_, response) => sendJson(response, { success: true, data: { items, total: 1 } });
    const { error } = await used(answer, { maxAnswerValues: 1_000 }, (env) => env.tasks());
    expect(error).toMatchObject({
      code: "sandbox.answer_too_large",
      message: expect.stringContaining("more than 1000 values, the client's limit"),
    });
    const shown = await used(answer, {}, (env) => env.tasks());
    expect(String(shown.error).length).toBeLessThan(1_000);
  });
});

describe("an error of the environment's own server", () => {
  it.each([
    ["a list of tools", "tool.list_failed", (env: Environment): Promise<unknown> => env.listTools()],
    ["a reset", "episode.failed", (env: Environment): Promise<unknown> => env.reset()],
  ] as const)("has a code that blames it: %s", async (_, code, work) => {
    const { error } = await used((_, response) => void response.writeHead(500).end("out of order"), { maxRetries: 0 }, work);
    expect(error).toMatchObject({ code });
  });
});
