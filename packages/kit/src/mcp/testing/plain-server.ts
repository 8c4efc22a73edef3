import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text as readText } from "node:stream/consumers";
import {
  createMcpHandler,
  isInitializeRequest,
  isJsonContentType,
  isLegacyRequest,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import { z } from "zod";
import { order, speech } from "./environment.ts";

/** The tools of this server; the environment has the same tools. */
export const CORE_TOOLS: readonly string[] = [
  "text",
  "nothing",
  "order",
  "fail",
  "speak",
  "speak.later",
  "sum",
  "picture",
  "checked.later",
];

export interface PlainServer extends AsyncDisposable {
  readonly url: string;
}

/** A server that uses only the MCP SDK, as documented: the reference for the kit's. */
export async function servePlain(identity: { readonly name: string; readonly version: string }): Promise<PlainServer> {
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>();
  const stateless = createMcpHandler(() => build(identity));

  async function answer(request: Request): Promise<Response> {
    const isOther = request.method === "POST" && !isJsonContentType(request.headers.get("content-type"));
    if (isOther || !(await isLegacyRequest(request))) return stateless.fetch(request);
    const sessionId = request.headers.get("mcp-session-id");
    if (sessionId !== null) return sessions.get(sessionId)?.handleRequest(request) ?? sessionNotFound(request);
    if (!isInitializeRequest(await bodyOf(request))) return stateless.fetch(request);
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: () => crypto.randomUUID(),
      onsessioninitialized: (id) => void sessions.set(id, transport),
    });
    await build(identity).connect(transport);
    return transport.handleRequest(request);
  }

  const server = createServer((request, response) => void pass(request, response, answer));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: async () => {
      await stateless.close();
      for (const transport of sessions.values()) await transport.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function build(identity: { readonly name: string; readonly version: string }): McpServer {
  const server = new McpServer(identity, { capabilities: { tools: { listChanged: false }, logging: {} } });
  const line = (text: string) => ({ content: [{ type: "text" as const, text }] });

  server.registerTool("text", { title: "Text", description: "Answers a line." }, () => line("a line"));
  server.registerTool("nothing", {}, () => ({ content: [] }));
  server.registerTool("order", { description: "Nested, with defaults.", inputSchema: order }, (input) => ({
    ...line(JSON.stringify(input)),
    structuredContent: input,
  }));
  server.registerTool("fail", { inputSchema: z.object({ message: z.string().min(1) }) }, ({ message }) => {
    throw new Error(message);
  });
  for (const name of ["speak", "speak.later"]) {
    server.registerTool(name, { inputSchema: speech }, async ({ said }, { mcpReq }) => {
      for (const one of said) {
        if ("level" in one) await mcpReq.log(one.level, one.data);
        else if (mcpReq._meta?.progressToken !== undefined) {
          const { done: progress, ...rest } = one;
          await mcpReq.notify({
            method: "notifications/progress",
            params: { progressToken: mcpReq._meta.progressToken, progress, ...rest },
          });
        }
      }
      return line(name === "speak" ? `${said.length}` : `said ${said.length}`);
    });
  }
  const numbers = z.array(z.number()).default([]);
  const total = z.object({ total: z.number() });
  server.registerTool("sum", { inputSchema: z.object({ numbers }), outputSchema: total }, (input) => {
    const structuredContent = { total: input.numbers.reduce((sum, n) => sum + n, 0) };
    return { ...line(JSON.stringify(structuredContent)), structuredContent };
  });
  server.registerTool("picture", {}, () => ({
    content: [{ type: "image", data: "aGk=", mimeType: "image/png" }],
  }));
  const even = z.number().refine(async (n) => n % 2 === 0, "must be even");
  server.registerTool("checked.later", { inputSchema: z.object({ n: even }) }, ({ n }) => line(`${n}`));
  return server;
}

async function bodyOf(request: Request): Promise<unknown> {
  if (request.method !== "POST") return undefined;
  return request
    .clone()
    .json()
    .catch(() => undefined);
}

async function sessionNotFound(request: Request): Promise<Response> {
  const id = ((await bodyOf(request)) as { id?: unknown } | undefined)?.id ?? null;
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message: "Session not found" }, id }, { status: 404 });
}

async function pass(incoming: IncomingMessage, outgoing: ServerResponse, answer: (request: Request) => Promise<Response>): Promise<void> {
  const body = await readText(incoming);
  const headers = Object.entries(incoming.headers).map(([key, value]): [string, string] => [key, String(value)]);
  const method = incoming.method ?? "GET";
  const response = await answer(new Request("http://localhost/mcp", { method, headers, ...(method === "POST" && { body }) }));
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.end(await response.text());
}
