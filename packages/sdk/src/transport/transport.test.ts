import { createServer as createHttpServer, Server as HttpServer } from "node:http";
import { createServer, type Server } from "node:net";
import { afterEach, describe, expect, it, vi } from "vitest";
import { deadUrl, httpServer } from "../../fixtures/http-server.ts";
import { TransportError } from "../errors/http-errors.ts";
import type { HttpRequest, Transport } from "../http/http.ts";
import { fetchTransport } from "./fetch.ts";
import { defaultTransport } from "./node.ts";

const transports: [string, Transport][] = [
  ["undici", defaultTransport],
  ["fetch", fetchTransport((url, init) => fetch(url, init))],
];

const raw: Server[] = [];
afterEach(() =>
  Promise.all(
    raw.splice(0).map((server) => {
      if (server instanceof HttpServer) server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    }),
  ),
);

/** More than all buffers between two processes on one machine. */
const BIG = 96 * 1024 * 1024;
const PIECE = new Uint8Array(64 * 1024);

const turnOfTheLoop = () => new Promise((resolve) => setImmediate(resolve));

/** Accepts a connection, reads the request, writes the given bytes and closes the connection. */
async function rawServer(answer: string): Promise<string> {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", () => socket.end(answer));
  });
  return listening(server);
}

async function listening(server: Server): Promise<string> {
  raw.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : 0}`;
}

const get = (url: string, signal?: AbortSignal): HttpRequest => ({ method: "GET", url, headers: {}, ...(signal && { signal }) });

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe.each(transports)("the transport by %s", (name, transport) => {
  it("sends method, headers, path, query and body, and reads status, header and text", async () => {
    await using server = await httpServer((seen, response) =>
      response.writeHead(201, { "x-kind": "echo" }).end(`${seen.method}:${seen.text}`),
    );
    const answer = await transport.send({ method: "PUT", url: `${server.url}/a/b?c=d`, headers: { "x-own": "1" }, body: "häh" });
    expect([answer.status, answer.header("X-Kind"), answer.header("x-none"), await answer.text()]).toEqual([201, "echo", null, "PUT:häh"]);
    expect(server.requests[0]).toMatchObject({ path: "/a/b", headers: { "x-own": "1" } });
    expect(server.requests[0]?.query.get("c")).toBe("d");
  });

  it("sends a streamed body", async () => {
    await using server = await httpServer((seen, response) => response.end(seen.text));
    async function* pieces() {
      for (const text of ["one ", "two ", "three"]) yield new TextEncoder().encode(text);
    }
    const answer = await transport.send({ method: "PUT", url: server.url, headers: {}, body: pieces() });
    expect(await answer.text()).toBe("one two three");
  });

  it("returns the body in chunks as they arrive", async () => {
    await using server = await httpServer((_, response) => response.end("abc"));
    const answer = await transport.send(get(server.url));
    let text = "";
    for await (const chunk of answer.chunks()) text += new TextDecoder().decode(chunk);
    expect(text).toBe("abc");
  });

  it("follows no redirect, so that no header goes to another host", async () => {
    await using other = await httpServer((_, response) => response.end("stolen"));
    await using server = await httpServer((_, response) => response.writeHead(307, { location: other.url }).end());
    const headers = { authorization: "Bearer secret", "aenvcore-envinstance-id": "shop-1" };
    expect((await transport.send({ method: "POST", url: server.url, headers, body: "{}" })).status).toBe(307);
    expect(other.requests).toEqual([]);
  });

  it("reports a request as sent when an open connection breaks", async () => {
    const error = await failure(transport.send(get(await rawServer(""))));
    expect(error).toBeInstanceOf(TransportError);
    expect(error).toMatchObject({ wasSent: true });
  });

  it("reports a response that ends within its body", async () => {
    const answer = await transport.send(get(await rawServer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")));
    expect(await failure(answer.text())).toMatchObject({ name: "TransportError", wasSent: true });
    const other = await transport.send(get(await rawServer("HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc")));
    const read = async () => {
      for await (const _ of other.chunks());
    };
    expect(await failure(read())).toMatchObject({ name: "TransportError", wasSent: true });
  });

  it("throws the signal's reason, before the request, while waiting and while reading", async () => {
    const reason = new Error("enough");
    expect(await failure(transport.send(get("http://127.0.0.1:9", AbortSignal.abort(reason))))).toBe(reason);

    const waiting = new AbortController();
    await using silent = await httpServer(() => waiting.abort(reason));
    expect(await failure(transport.send(get(silent.url, waiting.signal)))).toBe(reason);

    const reading = new AbortController();
    await using slow = await httpServer((_, response) => response.writeHead(200).write("begin"));
    const answer = await transport.send(get(slow.url, reading.signal));
    const text = failure(answer.text());
    reading.abort(reason);
    expect(await text).toBe(reason);
  });

  it("aborts a stalled download with an error that says so", async () => {
    await using server = await httpServer((_, response) => response.writeHead(200).write("begin"));
    const answer = await transport.send({ ...get(server.url), idleTimeoutMs: 500 });
    const read = async () => {
      for await (const _ of answer.chunks());
    };
    const stalled = {
      name: "TransportError",
      isTimeout: true,
      message: expect.stringContaining("no byte was sent or received for 500 ms"),
    };
    expect(await failure(read())).toMatchObject(stalled);
    const other = await transport.send({ ...get(server.url), idleTimeoutMs: 500 });
    expect(await failure(other.text())).toMatchObject(stalled);
  });

  it("times out when a server accepts the request and never answers", async () => {
    await using server = await httpServer(() => {});
    const error = await failure(transport.send({ ...get(server.url), idleTimeoutMs: 50 }));
    expect(error).toMatchObject({ name: "TransportError", isTimeout: true, message: expect.stringContaining(server.url) });
  });

  it("applies backpressure to a server that sends faster than the reader reads", async () => {
    let written = 0;
    await using server = await httpServer((_, response) => {
      const fill = () => {
        while (written < BIG && !response.destroyed) {
          written += PIECE.length;
          if (!response.write(PIECE)) return;
        }
        response.end();
      };
      response.on("drain", fill);
      fill();
    });
    const answer = await transport.send({ ...get(server.url), idleTimeoutMs: 10_000 });
    let read = 0;
    let ahead = 0;
    for await (const chunk of answer.chunks()) {
      read += chunk.length;
      ahead = Math.max(ahead, written - read);
      await turnOfTheLoop();
    }
    expect(read).toBe(BIG);
    expect(ahead).toBeLessThan(BIG / 4);
  });

  it(
    name === "undici" ? "knows that a refused request never left" : "does not claim to know that a refused request never left",
    async () => {
      expect(await failure(transport.send(get(await deadUrl())))).toMatchObject({ name: "TransportError", wasSent: name !== "undici" });
    },
  );
});

describe("an upload by undici", () => {
  /** Sends pieces without end, or up to a size, and counts them. */
  function source(size = Number.POSITIVE_INFINITY) {
    const count = { taken: 0, isClosed: false };
    async function* pieces() {
      try {
        for (; count.taken < size; count.taken += PIECE.length) yield PIECE;
      } finally {
        count.isClosed = true;
      }
    }
    return { count, pieces };
  }

  it("reads no more from its source than the server accepts", async () => {
    const { count, pieces } = source(BIG);
    let ahead = 0;
    let read = 0;
    const server = createHttpServer(async (request, response) => {
      for await (const chunk of request) {
        read += chunk.length;
        ahead = Math.max(ahead, count.taken - read);
        await turnOfTheLoop();
      }
      response.end("thanks");
    });
    const url = await listening(server);
    const answer = await defaultTransport.send({ method: "PUT", url, headers: {}, body: pieces(), idleTimeoutMs: 10_000 });
    expect(await answer.text()).toBe("thanks");
    expect(read).toBe(BIG);
    expect(ahead).toBeLessThan(BIG / 4);
  });

  it("is aborted when the server reads no more, with its source closed and not drained", async () => {
    const { count, pieces } = source();
    const url = await listening(createHttpServer(() => {}));
    const error = await failure(defaultTransport.send({ method: "PUT", url, headers: {}, body: pieces(), idleTimeoutMs: 100 }));
    expect(error).toMatchObject({
      name: "TransportError",
      isTimeout: true,
      message: expect.stringContaining("no byte was sent or received"),
    });
    await vi.waitUntil(() => count.isClosed);
    expect(count.taken).toBeLessThan(BIG / 4);
  });

  it("is aborted by its signal, with its source closed", async () => {
    const { count, pieces } = source();
    const controller = new AbortController();
    const reason = new Error("enough");
    const url = await listening(createHttpServer(() => controller.abort(reason)));
    const { signal } = controller;
    expect(await failure(defaultTransport.send({ method: "PUT", url, headers: {}, body: pieces(), signal }))).toBe(reason);
    await vi.waitUntil(() => count.isClosed);
  });
});

describe("the transport by undici", () => {
  it("reports a request to an unknown host as not sent", async () => {
    expect(await failure(defaultTransport.send(get("http://no-such-host.invalid/")))).toMatchObject({
      name: "TransportError",
      wasSent: false,
    });
  });

  it("reuses its connections", async () => {
    const ports = new Set<number | undefined>();
    await using server = await httpServer((_, response) => {
      ports.add(response.socket?.remotePort);
      response.end("ok");
    });
    for (let at = 0; at < 20; at++) await (await defaultTransport.send(get(server.url))).text();
    // A second connection may be opened before the first is back in the pool.
    expect(ports.size).toBeLessThanOrEqual(2);
  });
});
