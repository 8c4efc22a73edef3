import { once } from "node:events";
import { Agent, type IncomingMessage, type ServerResponse } from "node:http";
import { createConnection } from "node:net";
import { pipeline } from "node:stream/promises";
import { setImmediate } from "node:timers/promises";
import { errorTable } from "@aenv/contract";
import { describe, expect, it, vi } from "vitest";
import { AGENT_KEY, ID, openGateway, paths, responseOf, textOf } from "./fixtures/gateway.ts";

/** What the sandbox saw and a function that answers it. */
interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

/** A sandbox that does nothing by itself: each request is handed to the test. */
function visits() {
  const waiting: Visit[] = [];
  const takers: ((visit: Visit) => void)[] = [];
  return {
    answer: (request: IncomingMessage, response: ServerResponse) => {
      const taker = takers.shift();
      if (taker === undefined) waiting.push({ request, response });
      else taker({ request, response });
    },
    next: () =>
      new Promise<Visit>((resolve) => {
        const visit = waiting.shift();
        if (visit === undefined) takers.push(resolve);
        else resolve(visit);
      }),
    get untaken() {
      return waiting.length;
    },
  };
}

const hello = (_: IncomingMessage, response: ServerResponse) => void response.end("hello");
const byId = (path = "/mcp", id = ID) => `/env-instance/${id}${path}`;
const nextChunk = async (message: IncomingMessage) => String((await once(message, "data"))[0]);

function* repeat(piece: Buffer, times: number): Generator<Buffer> {
  for (let at = 0; at < times; at++) yield piece;
}

describe.each(Object.entries(paths))("on the %s path", (_, open) => {
  describe("the gateway streams", () => {
    it("a response event by event, pings included, before the next one is written", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId(), { headers: { accept: "text/event-stream" } });
      sent.end();
      const { response } = await sandbox.next();
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      const stream = await responseOf(sent);
      for (const event of ["data: 1\n\n", ": ping - now\r\n\r\n", "data: 2\n\n"]) {
        const chunk = nextChunk(stream);
        response.write(event);
        expect(await chunk).toBe(event);
      }
      response.end();
      await textOf(stream);
      expect(stream.complete).toBe(true);
    });

    it("a request piece by piece, before it is complete", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId(), { method: "POST" });
      sent.write("one");
      const { request, response } = await sandbox.next();
      expect(await nextChunk(request)).toBe("one");
      const two = nextChunk(request);
      sent.end("two");
      expect(await two).toBe("two");
      response.end("thanks");
      expect(await textOf(await responseOf(sent))).toBe("thanks");
    });

    it("both at once: a response may begin before the request ends", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId(), { method: "POST" });
      sent.write("first");
      const { request, response } = await sandbox.next();
      await nextChunk(request);
      response.write("so soon");
      const answer = await responseOf(sent);
      expect(await nextChunk(answer)).toBe("so soon");
      const last = nextChunk(request);
      sent.end("last");
      expect(await last).toBe("last");
      response.end();
      await textOf(answer);
    });

    it("no faster than the client reads", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId());
      sent.end();
      const { response } = await sandbox.next();
      const piece = Buffer.alloc(1024 * 1024);
      let written = 0;
      let isHeld = false;
      const write = () => {
        while (!response.destroyed && written < 400) {
          written++;
          if (!response.write(piece)) break;
        }
      };
      response.on("drain", write);
      write();
      const stream = await responseOf(sent);
      stream.pause();
      await vi.waitUntil(async () => {
        const before = written;
        await new Promise((resolve) => setTimeout(resolve, 300));
        isHeld = written === before;
        return isHeld;
      });
      expect(isHeld).toBe(true);
      expect(written).toBeLessThan(100);
      stream.resume();
      await vi.waitUntil(() => written === 400, { timeout: 15_000 });
      response.end();
    });
  });

  describe("a gibibyte", () => {
    it("passes, and little of it is buffered at any time", { timeout: 60_000 }, async () => {
      const piece = Buffer.alloc(1024 * 1024);
      const received: number[] = [];
      await using gateway = await openGateway(async (request, response) => {
        let size = 0;
        for await (const chunk of request) size += chunk.length;
        received.push(size);
        await pipeline(repeat(piece, 128), response);
      });
      const before = process.memoryUsage().rss;
      let most = 0;
      const watch = setInterval(() => {
        most = Math.max(most, process.memoryUsage().rss - before);
      }, 20);
      const sent = open(gateway.url + byId(), { method: "POST" });
      await pipeline(repeat(piece, 1024), sent);
      let size = 0;
      for await (const chunk of await responseOf(sent)) size += chunk.length;
      clearInterval(watch);
      expect([received, size]).toEqual([[2 ** 30], 2 ** 27]);
      expect(most).toBeLessThan(300 * 1024 * 1024);
    });
  });

  describe("the gateway passes on", () => {
    it("session and protocol headers in both directions, and the caller's other headers", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const headers = {
        "mcp-session-id": "s1",
        "mcp-protocol-version": "2025-11-25",
        "last-event-id": "7",
        accept: "application/json, text/event-stream",
        "content-type": "application/json",
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "x-request-id": "mine",
      };
      const sent = open(`${gateway.url}${byId()}?a=1&b=%20`, { method: "POST", headers });
      sent.end("{}");
      const { request, response } = await sandbox.next();
      expect(request.url).toBe(`/env-instance/${ID}/mcp?a=1&b=%20`);
      expect(request.headers).toMatchObject(headers);
      response.writeHead(404, "Nope", { "mcp-session-id": "s2", "x-more": ["a", "b"], "content-type": "text/event-stream" });
      response.end("data: {}\n\n");
      const answer = await responseOf(sent);
      expect(answer.statusCode).toBe(404);
      expect(answer.headers).toMatchObject({ "mcp-session-id": "s2", "x-more": "a, b", "content-type": "text/event-stream" });
      expect(await textOf(answer)).toBe("data: {}\n\n");
    });

    it("neither the platform's own headers nor hop-by-hop headers", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(`${gateway.url}/mcp`, {
        headers: {
          "AEnvCore-EnvInstance-ID": ID,
          "AEnvCore-MCPProxy-URL": `http://${ID}:8081`,
          authorization: "Bearer secret",
          cookie: "session=secret",
          origin: gateway.url,
          te: "trailers",
          "proxy-authorization": "Basic secret",
        },
      });
      sent.end();
      const { request, response } = await sandbox.next();
      for (const name of [
        "authorization",
        "cookie",
        "origin",
        "te",
        "proxy-authorization",
        "aenvcore-envinstance-id",
        "aenvcore-mcpproxy-url",
      ])
        expect(request.headers).not.toHaveProperty(name);
      expect(JSON.stringify(request.rawHeaders)).not.toContain("secret");
      response.writeHead(200, { connection: "close", "keep-alive": "timeout=1", "proxy-authenticate": "Basic", "x-own": "1" });
      response.end();
      const { headers } = await responseOf(sent);
      expect(headers).toMatchObject({ "x-own": "1" });
      expect(headers).not.toHaveProperty("proxy-authenticate");
    });

    it.each(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("the method %s, with a body or without", async (method) => {
      const seen: string[] = [];
      await using gateway = await openGateway(async (request, response) => {
        seen.push(`${request.method} ${await textOf(request)}`);
        response.end("ok");
      });
      for (const body of [undefined, "", "body"]) {
        const sent = open(gateway.url + byId("/functions/f"), {
          method,
          headers: body === undefined ? {} : { "content-length": body.length },
        });
        sent.end(body);
        const answer = await responseOf(sent);
        expect([answer.statusCode, await textOf(answer)]).toEqual([200, method === "HEAD" ? "" : "ok"]);
      }
      expect(seen).toEqual([`${method} `, `${method} `, `${method} body`]);
    });

    it("that the client disconnected: before a response, within one, and within its own request", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const before = open(gateway.url + byId(), { method: "POST" });
      before.end("{}");
      const first = await sandbox.next();
      before.destroy();
      await once(first.response, "close");

      const within = open(gateway.url + byId(), { method: "POST" });
      within.end("{}");
      const second = await sandbox.next();
      second.response.write("data: 1\n\n");
      const answer = await responseOf(within);
      answer.on("error", () => {});
      within.destroy();
      await once(second.response, "close");

      const half = open(gateway.url + byId(), { method: "POST", headers: { "content-length": 100 } });
      half.write("half");
      const third = await sandbox.next();
      half.destroy();
      await once(third.response, "close");
      await vi.waitUntil(() => gateway.calls.length === 3);
      expect(gateway.calls.map((call) => call.end)).toEqual(["left", "left", "left"]);
    });

    it("that the sandbox disconnected, rather than a complete response", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId());
      sent.end();
      const { response } = await sandbox.next();
      response.write("data: 1\n\n");
      const answer = await responseOf(sent);
      response.destroy();
      await expect(textOf(answer)).rejects.toThrow(/aborted/);
    });

    it("only the final response of a sandbox that sends informational ones first", async () => {
      await using gateway = await openGateway((_, response) => {
        response.writeEarlyHints({ link: "</a>; rel=preload" });
        response.writeProcessing();
        response.end("at last");
      });
      const answer = await fetch(gateway.url + byId());
      expect([answer.status, await answer.text()]).toEqual([200, "at last"]);
    });
  });

  describe("the gateway keeps connections", () => {
    it("to a sandbox and to a client, from one call to the next", async () => {
      await using gateway = await openGateway(hello);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      const ports = new Set<number | undefined>();
      gateway.gateway.server.on("connection", (socket) => ports.add(socket.remotePort));
      for (let n = 0; n < 5; n++) {
        const sent = open(gateway.url + byId(), { agent, method: "POST" });
        sent.end("{}");
        expect(await textOf(await responseOf(sent))).toBe("hello");
      }
      agent.destroy();
      expect(gateway.sandboxSockets.size).toBe(1);
      expect(ports.size).toBe(1);
    });

    it("usable after a call that was refused before its body was read", async () => {
      await using gateway = await openGateway(hello);
      const agent = new Agent({ keepAlive: true, maxSockets: 1 });
      for (const id of ["shop-nobody", ID]) {
        const sent = open(gateway.url + byId("/mcp", id), { agent, method: "POST" });
        sent.end(Buffer.alloc(300_000));
        const answer = await responseOf(sent);
        expect(answer.statusCode).toBe(id === ID ? 200 : 404);
        await textOf(answer);
      }
      agent.destroy();
    });
  });

  describe("the gateway answers clearly for", () => {
    const ask = async (url: string, headers: Record<string, string> = {}) => {
      const answer = await fetch(url, { method: "POST", body: "{}", headers });
      const body = (await answer.json()) as { success: boolean; error: string; errorInfo: { code: string; retryable: boolean } };
      return { status: answer.status, retryAfter: answer.headers.get("retry-after"), error: body.error, ...body.errorInfo };
    };

    it("an instance that is unknown, starting, failed or gone", async () => {
      await using gateway = await openGateway(hello);
      await gateway.put({ id: "shop-starting", agentKey: "k1", status: "Creating", slot: null });
      await gateway.put({ id: "shop-failed", agentKey: "k2", status: "Failed", reason: "it ran out of memory" });
      await gateway.put({ id: "shop-gone", agentKey: "k3", status: "Terminated", reason: "its time to live of 30m was over" });
      expect(await ask(gateway.url + byId("/mcp", "shop-nobody"))).toMatchObject({
        status: 404,
        code: "instance.not_found",
        retryable: false,
      });
      expect(await ask(gateway.url + byId("/mcp", "shop-starting"))).toMatchObject({
        status: errorTable["instance.starting"].status,
        code: "instance.starting",
        retryable: true,
        retryAfter: "1",
      });
      expect(await ask(gateway.url + byId("/mcp", "shop-failed"))).toMatchObject({
        status: 502,
        code: "instance.failed",
        error: expect.stringContaining("it ran out of memory"),
      });
      expect(await ask(gateway.url + byId("/mcp", "shop-gone"))).toMatchObject({
        status: 410,
        code: "instance.gone",
        error: expect.stringContaining("its time to live of 30m was over"),
      });
    });

    it("a sandbox that does not answer, even while the request is still being sent", async () => {
      await using gateway = await openGateway(hello);
      await gateway.killSandbox();
      for (const size of [2, 5_000_000]) {
        const sent = open(gateway.url + byId(), { method: "POST" });
        sent.end(Buffer.alloc(size));
        const answer = await responseOf(sent);
        expect(answer.statusCode).toBe(502);
        const text = await textOf(answer);
        expect(JSON.parse(text)).toMatchObject({ success: false, errorInfo: { code: "sandbox.lost", retryable: true } });
        expect(text).not.toMatch(/ECONN|ENOENT|127\.0\.0\.1|socket/);
      }
    });

    it("a sandbox that breaks off while the request is still being sent", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(gateway.url + byId(), { method: "POST" });
      sent.write(Buffer.alloc(500_000));
      const { request } = await sandbox.next();
      await nextChunk(request);
      request.socket.destroy();
      const answer = await responseOf(sent);
      expect(answer.statusCode).toBe(502);
      expect(JSON.parse(await textOf(answer))).toMatchObject({ errorInfo: { code: "sandbox.lost" } });
      sent.destroy();
    });

    it.each(["keep-alive", "close"])(
      "a client that sends all before it reads, and is refused at once (connection: %s)",
      async (connection) => {
        await using gateway = await openGateway((request, response) => {
          request.once("data", () => response.writeHead(413).end("too much"));
        });
        for (const [id, expected] of [
          [ID, "HTTP/1.1 413"],
          ["shop-nobody", "HTTP/1.1 404"],
        ]) {
          const socket = createConnection(Number(new URL(gateway.url).port), "127.0.0.1").on("error", () => {});
          socket.pause();
          const size = 20_000_000;
          socket.write(
            `POST ${byId("/mcp", id)} HTTP/1.1\r\nHost: localhost\r\nConnection: ${connection}\r\nContent-Length: ${size}\r\n\r\n`,
          );
          await new Promise((resolve) => socket.write(Buffer.alloc(size), resolve));
          expect(String((await once(socket.resume(), "data"))[0])).toContain(expected);
          socket.destroy();
        }
      },
    );

    it("a client that never ends its request, and closes the connection after a while", async () => {
      await using gateway = await openGateway(hello);
      const sent = open(gateway.url + byId("/mcp", "shop-nobody"), { method: "POST" });
      sent.write("for ever");
      const answer = await responseOf(sent);
      expect(answer.statusCode).toBe(404);
      await once(sent, "close");
    });

    it("a body that is too large, by its content-length or while it is read", async () => {
      await using gateway = await openGateway(
        async (request, response) => {
          await textOf(request).catch(() => {});
          response.end("ok");
        },
        { maxBodyBytes: 1_000_000 },
      );
      for (const headers of [{ "content-length": "3000000" }, { "transfer-encoding": "chunked" }]) {
        const sent = open(gateway.url + byId(), { method: "POST", headers });
        sent.end(Buffer.alloc(3_000_000));
        const answer = await responseOf(sent);
        expect(answer.statusCode).toBe(413);
        expect(await textOf(answer)).toContain("larger than 1000000 bytes");
      }
      const fits = open(gateway.url + byId(), { method: "POST" });
      fits.end(Buffer.alloc(1_000_000));
      expect((await responseOf(fits)).statusCode).toBe(200);
    });

    it("a WebSocket and a CONNECT tunnel, which it does not support", async () => {
      await using gateway = await openGateway(hello);
      const { port } = new URL(gateway.url);
      const talk = async (text: string) => {
        const socket = createConnection(Number(port), "127.0.0.1");
        socket.end(text);
        let answer = "";
        for await (const piece of socket.setEncoding("latin1")) answer += piece;
        return answer;
      };
      const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAA\r\n";
      const refused = await talk(`GET ${byId()} HTTP/1.1\r\nHost: localhost\r\n${upgrade}\r\n`);
      expect(refused).toMatch(/^HTTP\/1\.1 400 .*WebSocket/s);
      expect(await talk("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: localhost\r\n\r\n")).not.toMatch(/^HTTP\/1\.1 2/);
      expect(gateway.sandboxSockets.size).toBe(0);
    });

    it("every client while it drains", async () => {
      await using gateway = await openGateway(hello);
      gateway.gateway.drain();
      expect(await ask(gateway.url + byId())).toMatchObject({ status: 503, code: "server.draining", retryable: true, retryAfter: "1" });
      expect(await (await fetch(`${gateway.url}/health`)).json()).toMatchObject({ status: "healthy" });
    });
  });

  describe("the gateway refuses", () => {
    it.each([
      { origin: "http://localhost:3000" },
      { "sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors" },
      { "sec-fetch-site": "same-site" },
      { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate" },
    ])("a request of a page, which may be one of a program behind a link: %j", async (headers) => {
      await using gateway = await openGateway(hello);
      for (const path of [byId(), byId("/task/reset"), `/agent/${AGENT_KEY}/mcp`, "/env-service/tools/mcp"]) {
        const sent = open(gateway.url + path, { method: "POST", headers });
        sent.end();
        const answer = await responseOf(sent);
        expect([answer.statusCode, JSON.parse(await textOf(answer)).errorInfo.code]).toEqual([403, "request.forbidden_origin"]);
      }
    });
  });

  describe("the agent API", () => {
    it("gives access to the tools", async () => {
      const sandbox = visits();
      await using gateway = await openGateway(sandbox.answer);
      const sent = open(`${gateway.url}/agent/${AGENT_KEY}/mcp?x=1`, { method: "POST" });
      sent.end("{}");
      const { request, response } = await sandbox.next();
      expect(request.url).toBe(`/env-instance/${ID}/mcp?x=1`);
      response.end("tools");
      expect(await textOf(await responseOf(sent))).toBe("tools");
    });

    it("never reveals the instance's id, which would give access to the trainer API", async () => {
      await using gateway = await openGateway(hello);
      await gateway.put({ id: "shop-starting", agentKey: "k1", status: "Creating", slot: null });
      await gateway.put({ id: "shop-failed", agentKey: "k2", status: "Failed", reason: "it ran out of memory" });
      await gateway.put({ id: "shop-gone", agentKey: "k3", status: "Terminated", reason: "deleted by its owner" });
      await gateway.killSandbox();
      for (const [key, status] of [
        ["k1", errorTable["instance.starting"].status],
        ["k2", 502],
        ["k3", 410],
        [AGENT_KEY, 502],
        ["nobody", 404],
      ] as const) {
        const answer = await fetch(`${gateway.url}/agent/${key}/mcp`, { method: "POST", body: "{}" });
        expect(answer.status).toBe(status);
        expect(`${await answer.text()}${JSON.stringify([...answer.headers])}`).not.toContain("shop-");
      }
    });
  });

  describe("with access on", () => {
    const role = async (gateway: Awaited<ReturnType<typeof openGateway>>, owner: string, given: "trainer" | "agent" | "admin") => ({
      authorization: `Bearer ${(await gateway.tokens.create({ owner, roles: [given] })).token}`,
    });
    const statusOf = async (url: string, headers: Record<string, string> = {}) =>
      (await fetch(url, { method: "POST", body: "{}", headers })).status;

    it("another owner's instance is not found, whatever its status", async () => {
      await using gateway = await openGateway(hello, { isAccessOn: true });
      await gateway.put({ id: "shop-starting", agentKey: "k1", status: "Creating", slot: null });
      await gateway.put({ id: "shop-failed", agentKey: "k2", status: "Failed", reason: "a secret reason" });
      await gateway.put({ id: "shop-gone", agentKey: "k3", status: "Terminated", reason: "a secret reason" });
      const eve = await role(gateway, "eve", "trainer");
      for (const id of [ID, "shop-starting", "shop-failed", "shop-gone", "shop-nobody"]) {
        const answer = await fetch(gateway.url + byId("/mcp", id), { method: "POST", body: "{}", headers: eve });
        expect(answer.status).toBe(404);
        expect(await answer.json()).toMatchObject({ error: `instance '${id}' not found` });
      }
      expect(await statusOf(gateway.url + byId(), await role(gateway, "ada", "trainer"))).toBe(200);
      expect(await statusOf(gateway.url + byId(), await role(gateway, "root", "admin"))).toBe(200);
    });

    it("a wrong token gives no access, an agent's only to tools, and none is needed where ids are keys", async () => {
      await using gateway = await openGateway(hello, { isAccessOn: true });
      expect(await statusOf(gateway.url + byId(), { authorization: "Bearer aenv_wrong" })).toBe(401);
      const agent = await role(gateway, "ada", "agent");
      expect(await statusOf(gateway.url + byId("/task/reward"), agent)).toBe(403);
      expect(await statusOf(gateway.url + byId("/mcp"), agent)).toBe(200);
      expect(await statusOf(gateway.url + byId())).toBe(200);
    });

    it("an id and an agent's link open an instance only while the token that created it is valid", async () => {
      await using gateway = await openGateway(hello, { isAccessOn: true });
      const { row } = await gateway.tokens.create({ owner: "ada", roles: ["trainer"] });
      await gateway.change({ tokenId: row.id });
      const paths = [byId(), byId("/mcp"), `/agent/${AGENT_KEY}/mcp`];
      const statuses = async (headers?: Record<string, string>) => Promise.all(paths.map((path) => statusOf(gateway.url + path, headers)));
      // Twice: the second calls find the instance and the token in memory.
      for (let time = 0; time < 2; time++) expect(await statuses()).toEqual([200, 200, 200]);
      await gateway.tokens.revoke(row.id);
      expect(await statuses()).toEqual([401, 401, 401]);
      expect(await (await fetch(gateway.url + byId())).text()).toContain("the token that created instance");
      const other = await role(gateway, "ada", "trainer");
      expect((await statuses(other)).slice(0, 2)).toEqual([200, 200]);
    });

    it("the id of a service's replica is no key, because the replica outlives every token", async () => {
      await using gateway = await openGateway(hello, { isAccessOn: true });
      await gateway.change({ service: "shop" });
      expect(await statusOf(gateway.url + byId())).toBe(401);
      expect(await statusOf(gateway.url + byId(), await role(gateway, "ada", "trainer"))).toBe(200);
    });

    it("ids are not keys when the setting is off, but agent links are", async () => {
      await using gateway = await openGateway(hello, { isAccessOn: true, idsAreKeys: false });
      expect(await statusOf(gateway.url + byId())).toBe(401);
      expect(await statusOf(gateway.url + byId(), await role(gateway, "ada", "trainer"))).toBe(200);
      expect(await statusOf(`${gateway.url}/agent/${AGENT_KEY}/mcp`)).toBe(200);
    });
  });
});

describe("a reward", () => {
  it("begins the phase of a reward before the sandbox gets the request, and ends it when the answer has been sent, before the next call", async () => {
    const seen: string[] = [];
    await using gateway = await openGateway(
      (request, response) => {
        seen.push(String(request.url).split("/").slice(-2).join("/"));
        response.end("{}");
      },
      {
        rewardPhases: {
          enter: async () => {
            seen.push("enter");
            return () => void seen.push("leave");
          },
          left: () => (seen.includes("leave") ? setImmediate().then(() => void seen.push("left")) : null),
        },
      },
    );
    for (const path of ["/task/reward", "/task/reset"]) await fetch(gateway.url + byId(path), { method: "POST", body: "{}" });
    await vi.waitFor(() => expect(seen).toEqual(["enter", "task/reward", "leave", "left", "task/reset"]));
  });
});
