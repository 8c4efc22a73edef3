import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { ID, openGateway, textOf } from "../fixtures/gateway.ts";
import { openWire } from "../fixtures/wire.ts";

const echo = async (request: IncomingMessage, response: ServerResponse) => {
  const body = await textOf(request).catch(() => "");
  response.end(`${request.method} ${body}`);
};
const PATH = `/env-instance/${ID}/mcp`;
const post = (body: string, more = "") =>
  `POST ${PATH} HTTP/1.1\r\nHost: localhost\r\n${more}Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
const get = (path: string) => `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`;

describe("one connection", () => {
  it("carries short calls, long ones and the gateway's own responses, one after the other", async () => {
    await using gateway = await openGateway(echo);
    using wire = await openWire(gateway.url);
    wire.write(get("/health"));
    expect(await wire.hear(/running"\}$/)).toMatch(/^HTTP\/1\.1 200 OK/);
    wire.write(post("one"));
    expect(await wire.hear(/one$/)).toMatch(/^HTTP\/1\.1 200 OK\r\n.*keep-alive: timeout=75\r\n.*\r\nPOST one$/s);
    wire.write(get("/env-instance/nobody/mcp"));
    expect(await wire.hear(/\}$/)).toMatch(/^HTTP\/1\.1 404 Not Found\r\n.*instance 'nobody' not found/s);
    wire.write(get(PATH));
    await wire.hear(/GET $/);
    wire.write(post("x".repeat(100_000)));
    await wire.hear(/x{100000}/);
    wire.write(post("last"));
    await wire.hear(/POST last/);
    expect(gateway.calls.map(({ status, end }) => [status, end])).toEqual([
      [200, "refused"],
      [200, "answered"],
      [404, "refused"],
      [200, "answered"],
      [200, "answered"],
      [200, "answered"],
    ]);
  });

  it("may deliver a request's head and body separately, and the next request before the response", async () => {
    await using gateway = await openGateway(echo);
    using wire = await openWire(gateway.url);
    const [head = "", body = ""] = post("apart").split(/(?<=\r\n\r\n)/);
    wire.write(head);
    await new Promise((resolve) => setImmediate(resolve));
    wire.write(body);
    await wire.hear(/POST apart$/);
    wire.write(post("first"));
    wire.write(post("second"));
    wire.write(post("third"));
    expect((await wire.hear(/third/)).match(/POST [a-z]+/g)).toEqual(["POST first", "POST second", "POST third"]);
  });

  it("is closed when its client is silent for too long, at any point of a request", async () => {
    await using gateway = await openGateway(echo, { httpLimits: { headersMs: 100, requestMs: 200, connections: 10 } });
    for (const start of ["", "POST /", post("half").slice(0, -4), post("half").slice(0, -2)]) {
      using wire = await openWire(gateway.url);
      wire.write(start);
      await once(wire.socket, "close");
    }
  });

  it("that is retired stays open until its next response, which says that it is closed, on both paths", async () => {
    await using gateway = await openGateway(echo);
    using idle = await openWire(gateway.url);
    using regular = await openWire(gateway.url);
    regular.write(post("one").replace("POST", "PUT"));
    await regular.hear(/PUT one$/);
    gateway.gateway.server.retireConnections();
    for (const [wire, request] of [
      [idle, post("last")],
      [regular, post("last").replace("POST", "PUT")],
      [await openWire(gateway.url), post("last")],
      [await openWire(gateway.url), get("/health?last")],
      [await openWire(gateway.url), get("/env-instance/nobody/mcp")],
    ] as const) {
      const closed = once(wire.socket, "close");
      wire.write(request);
      expect(await wire.hear(/last$|\}$/)).toMatch(/connection: close\r\n/i);
      await closed;
    }
  });

  it("that is retired after the head of a response stays open until the response after it", async () => {
    const waiting: ServerResponse[] = [];
    await using gateway = await openGateway((_, response) => {
      response.write("begun");
      waiting.push(response);
    });
    using wire = await openWire(gateway.url);
    wire.write(post("one"));
    expect(await wire.hear(/begun/)).toMatch(/connection: keep-alive\r\n/i);
    gateway.gateway.server.retireConnections();
    waiting[0]?.end("-ended");
    await wire.hear(/-ended/);
    const closed = once(wire.socket, "close");
    wire.write(post("two"));
    expect(await wire.hear(/begun/)).toMatch(/connection: close\r\n/i);
    waiting[1]?.end("-ended");
    await wire.hear(/-ended/);
    await closed;
  });

  it("is closed at once when it is idle and the server closes, and after its call when it is busy", async () => {
    const waiting: ServerResponse[] = [];
    await using gateway = await openGateway((_, response) => void waiting.push(response));
    using idle = await openWire(gateway.url);
    using busy = await openWire(gateway.url);
    busy.write(post("wait"));
    await vi.waitUntil(() => waiting.length === 1);
    gateway.gateway.server.close();
    await once(idle.socket, "close");
    waiting[0]?.end("done");
    await busy.hear(/done$/);
    const closed = once(busy.socket, "close");
    gateway.gateway.server.closeIdleConnections();
    await closed;
  });
});

describe("a connection to a sandbox", () => {
  it("is used again, and not after the sandbox has closed it", async () => {
    await using gateway = await openGateway(echo);
    using wire = await openWire(gateway.url);
    for (const call of ["a", "b"]) {
      wire.write(post(call));
      await wire.hear(new RegExp(`POST ${call}$`));
    }
    expect(gateway.sandboxSockets.size).toBe(1);
    for (const socket of gateway.sandboxSockets) socket.destroy();
    await vi.waitUntil(() => [...gateway.sandboxSockets].every((socket) => socket.destroyed));
    await vi.waitFor(async () => {
      wire.write(post("c"));
      expect(await wire.hear(/POST c$|\}$/)).toMatch(/POST c$/);
    });
    expect(gateway.sandboxSockets.size).toBe(2);
  });

  it.each([
    ["not HTTP", "220 ready for mail\r\n\r\n"],
    ["of two lengths", "HTTP/1.1 200 mail\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx"],
    ["in broken chunks", "HTTP/1.1 200 mail\r\ntransfer-encoding: chunked\r\n\r\nmail\r\n"],
  ])("whose sandbox's response is %s gives the client a 502 without details", async (_, words) => {
    await using gateway = await openGateway(echo);
    const sandbox = createServer((socket) => void socket.on("error", () => {}).end(words)).listen(0, "127.0.0.1");
    await once(sandbox, "listening");
    const { port } = sandbox.address() as AddressInfo;
    const address = { kind: "tcp" as const, host: "127.0.0.1", port };
    await gateway.put({ id: "shop-odd", agentKey: "odd", slot: { sandboxId: "odd", address, prefix: "", isOwnSandbox: true } });
    using wire = await openWire(gateway.url);
    wire.write(post("hello").replace(ID, "shop-odd"));
    const answer = await wire.hear(/\}$/);
    expect(answer).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n.*retry-after: 1\r\n.*sandbox\.lost/s);
    expect(answer).not.toContain("mail");
    sandbox.close();
  });
});
