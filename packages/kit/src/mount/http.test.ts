import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { readBoundedText } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { compileEnvironment } from "../compile/environment.ts";
import { quietHooks } from "../instances/call.ts";
import { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { type McpUrlOptions, mcpEnvironment } from "./mcp-environment.ts";

interface Heard {
  readonly method: string;
  readonly headers: IncomingMessage["headers"];
}

const servers: Server[] = [];
const hosts: Host[] = [];

afterEach(async () => {
  for (const host of hosts.splice(0)) await host.close("the test is over");
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

type Special = (name: string, id: number, response: ServerResponse) => boolean;

/** A small server of Streamable HTTP with one session at a time. */
async function startServer(special: Special = () => false) {
  const heard: Heard[] = [];
  const server = createServer(async (request, response) => {
    const { id, method, params } =
      request.method === "DELETE"
        ? { id: 0, method: "DELETE", params: {} }
        : JSON.parse(await readBoundedText(request, { maxBytes: 10_000 }));
    heard.push({ method, headers: request.headers });
    if (id === undefined || method === "DELETE") return void response.writeHead(202).end();
    if (method === "tools/call" && special(params.name, id, response)) return;
    const inputSchema = { type: "object", properties: {} };
    const result =
      method === "initialize"
        ? { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "small", version: "1" } }
        : method === "tools/list"
          ? { tools: ["json", "stream", "odd"].map((name) => ({ name, inputSchema })) }
          : { content: [{ type: "text", text: `called ${params.name}` }] };
    const message = JSON.stringify({ jsonrpc: "2.0", id, result });
    if (params?.name !== "stream")
      return void response.writeHead(200, { "content-type": "application/json", "mcp-session-id": "s1" }).end(message);
    response.writeHead(200, { "content-type": "text/event-stream" });
    // The stream stays open after the answer.
    response.write(`: hello\n\nevent: message\ndata: ${message}\n\n`);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  servers.push(server);
  const { port } = server.address() as AddressInfo;
  return { heard, server, port, url: `http://127.0.0.1:${port}/mcp` };
}

async function create(options: McpUrlOptions, environment_variables: Record<string, string> = {}): Promise<Instance> {
  const host = new Host(await compileEnvironment(mcpEnvironment(options), { name: "small", version: "1.0.0" }), () => {});
  hosts.push(host);
  return host.create({ environment_variables });
}

async function call(instance: Instance, name: string) {
  const tool = instance.tools.get(name);
  if (tool === undefined) throw new Error(`there is no tool ${name}`);
  const { content } = await instance.callTool(tool, {}, quietHooks());
  return content[0]?.text;
}

const allowed = ({ url, port }: { url: string; port: number }) => ({ url, allowPrivate: [`127.0.0.1:${port}`] });

describe("an MCP server that is reached by a URL", () => {
  it("answers with JSON and with streams, in one session with the given headers", async () => {
    const server = await startServer();
    const instance = await create({ ...allowed(server), headers: { authorization: `Bearer ${"$"}{TOKEN}` } }, { TOKEN: "abc" });
    expect(await call(instance, "json")).toBe("called json");
    expect(await call(instance, "stream")).toBe("called stream");
    await hosts.splice(0)[0]?.close("the end");
    expect(server.heard.map(({ method }) => method)).toEqual([
      "initialize",
      "notifications/initialized",
      "tools/list",
      "tools/call",
      "tools/call",
      "DELETE",
    ]);
    expect(server.heard.every(({ headers }) => headers.authorization === "Bearer abc")).toBe(true);
    expect(server.heard.slice(1).every(({ headers }) => headers["mcp-session-id"] === "s1")).toBe(true);
    expect(server.heard.at(-1)?.headers["mcp-protocol-version"]).toBe("2025-06-18");
  });

  it("is refused at a private or loopback address that nobody has allowed, by number and by name", async () => {
    const { port, heard } = await startServer();
    for (const url of [
      `http://127.0.0.1:${port}/`,
      `http://localhost:${port}/`,
      `http://[::1]:${port}/`,
      "http://169.254.169.254/",
      "http://10.1.2.3/",
    ])
      await expect(create({ url }), url).rejects.toThrow(/which is refused/);
    await expect(create({ url: `http://127.0.0.1:${port}/`, allowPrivate: ["127.0.0.1:1"] })).rejects.toThrow(/which is refused/);
    expect(heard).toEqual([]);
  });

  it("is not followed to where it redirects", async () => {
    const target = await startServer();
    const server = await startServer((_name, _id, response) => void response.writeHead(307, { location: target.url }).end() === undefined);
    const instance = await create(allowed(server));
    await expect(call(instance, "odd")).rejects.toMatchObject({ code: "network.failed", message: expect.stringMatching(/redirects to/) });
    expect(target.heard).toEqual([]);
  });

  it("is lost when it forgets the session, and a fault of the network is no result of a tool", async () => {
    const answers = [500, 404];
    const server = await startServer((_name, _id, response) => void response.writeHead(answers.shift() ?? 404).end("sorry") === undefined);
    const instance = await create(allowed(server));
    await expect(call(instance, "odd")).rejects.toMatchObject({
      code: "network.failed",
      message: expect.stringMatching(/status 500: sorry/),
    });
    await expect(call(instance, "odd")).rejects.toMatchObject({ code: "sandbox.lost" });
  });

  it("and answers without end is cut off", { timeout: 30_000 }, async () => {
    const server = await startServer((_name, _id, response) => {
      const more = (): void => void response.write(Buffer.alloc(1_000_000, "x"), () => more());
      response.writeHead(200, { "content-type": "application/json" });
      more();
      return true;
    });
    await expect(call(await create(allowed(server)), "odd")).rejects.toMatchObject({
      code: "network.failed",
      message: expect.stringMatching(/larger than/),
    });
  });
});
