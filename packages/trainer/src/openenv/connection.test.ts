import { once } from "node:events";
import { createServer } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { type Respond, WebSocketConnection, type WebSocketLimits } from "./connection.ts";

const limits: WebSocketLimits = { maxMessageBytes: 1_000, maxWaiting: 3, pingEveryMs: 60_000, drainMs: 60_000, maxUnsentBytes: 1_000_000 };

async function serve(respond: Respond, own: Partial<WebSocketLimits> = {}) {
  const connections: WebSocketConnection[] = [];
  const server = createServer().on("upgrade", (request, socket, head) => {
    try {
      connections.push(WebSocketConnection.accept(request, socket, head, respond, { ...limits, ...own }));
    } catch {
      socket.destroy();
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const sockets: Socket[] = [];
  /** A client that writes bytes. */
  const raw = async (headers = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n") => {
    const socket = connect(port, "127.0.0.1").on("error", () => {});
    sockets.push(socket);
    socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${headers}\r\n`);
    return socket;
  };
  const client = async () => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}`);
    const closed = new Promise<{ code: number; reason: string }>((resolve) => socket.addEventListener("close", resolve));
    const messages: unknown[] = [];
    socket.addEventListener("message", ({ data }) => messages.push(data));
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    return { socket, closed, messages };
  };
  const dispose = async () => {
    for (const socket of sockets) socket.destroy();
    for (const connection of connections) connection.close(1001);
    server.close();
    await Promise.all(connections.map(({ gone }) => gone));
  };
  return { raw, client, connections, [Symbol.asyncDispose]: dispose };
}

/** A client's frame with a mask of zeros. */
const frame = (first: number, payload: Buffer | string) => {
  const bytes = Buffer.from(payload);
  return Buffer.concat([Buffer.from([first, 0x80 | bytes.length, 0, 0, 0, 0]), bytes]);
};

const PING = 0x89;
const PONG = 0x8a;

describe("a client that sends and does not read", () => {
  it("gets only the latest of its pings answered, so that 40 MB of them leave one answer in memory", async () => {
    await using server = await serve(async (text) => text);
    const socket = await server.raw();
    await once(socket, "readable");
    const flood = Buffer.concat(Array.from({ length: 8_000 }, () => frame(PING, "p".repeat(120))));
    for (let sent = 0; sent < 40e6; sent += flood.length) if (!socket.write(flood)) await once(socket, "drain");
    socket.write(frame(PING, "the last one"));
    const [connection] = server.connections;
    let tail = Buffer.alloc(0);
    // Before it is read: an answer to each ping would be 40 MB, of which the system buffers a few.
    expect(connection?.unsentBytes).toBeLessThan(1_000);
    socket.on("data", (data: Buffer) => {
      tail = Buffer.concat([tail, data]).subarray(-14);
    });
    await vi.waitUntil(() => tail.includes("the last one"), { timeout: 10_000 });
    expect(tail[0]).toBe(PONG);
    expect(connection?.unsentBytes).toBe(0);
  });

  it("is disconnected when more is sent to it than the limit of unsent bytes", async () => {
    await using server = await serve(async (text) => text, { maxUnsentBytes: 10_000 });
    const socket = await server.raw();
    await once(socket, "readable");
    const [connection] = server.connections;
    const large = "x".repeat(16 * 1024 ** 2);
    void connection?.send(large);
    void connection?.send("more");
    await connection?.gone;
  });
});

describe("a WebSocket", () => {
  it("answers every message in order, also when the answers take different times", async () => {
    const waits = new Map<string, () => void>();
    await using server = await serve((text) => new Promise((resolve) => waits.set(text, () => resolve(text.toUpperCase()))));
    const { socket, messages } = await server.client();
    for (const text of ["a", "b", "ü"]) socket.send(text);
    for (const text of ["a", "b", "ü"]) {
      await vi.waitUntil(() => waits.has(text));
      waits.get(text)?.();
    }
    await vi.waitFor(() => expect(messages).toEqual(["A", "B", "Ü"]));
  });

  it("answers pings while an answer takes long, and joins messages that come in pieces", async () => {
    const asked: string[] = [];
    await using server = await serve((text) => {
      asked.push(text);
      return new Promise(() => {});
    });
    const socket = await server.raw();
    const heard: Buffer[] = [];
    socket.on("data", (bytes) => heard.push(bytes));
    socket.write(Buffer.concat([frame(0x01, "he"), frame(0x89, "ping"), frame(0x00, "ll"), frame(0x80, "o"), frame(0x89, "later")]));
    await vi.waitFor(() => {
      const text = Buffer.concat(heard).toString("latin1");
      expect(text).toContain("\x8a\x04ping");
      expect(text).toContain("\x8a\x05later");
    });
    expect(asked).toEqual(["hello"]);
  });

  it.each([
    ["is too long", "x".repeat(1_001), 1009],
    ["is not text", new Uint8Array(2), 1003],
  ])("is closed with a code if a message %s", async (_, message, code) => {
    await using server = await serve(async (text) => text);
    const { socket, closed } = await server.client();
    socket.send(message);
    expect((await closed).code).toBe(code);
  });

  it.each([
    ["is not UTF-8", frame(0x81, Buffer.from([0xff])), 1007],
    ["begins inside another", Buffer.concat([frame(0x01, "a"), frame(0x81, "b")]), 1002],
    ["is a piece of none", frame(0x80, "a"), 1002],
  ])("is closed with a code if a message %s", async (_, bytes, code) => {
    await using server = await serve(async (text) => text);
    const socket = await server.raw();
    const heard: Buffer[] = [];
    socket.on("data", (chunk) => heard.push(chunk));
    socket.write(bytes);
    await once(socket, "end");
    const all = Buffer.concat(heard);
    expect(all.readUInt16BE(all.indexOf("\r\n\r\n") + 6)).toBe(code);
  });

  it("is closed if a client sends more than it waits for", async () => {
    await using server = await serve(() => new Promise(() => {}));
    const { socket, closed } = await server.client();
    for (let at = 0; at < 6; at++) socket.send("x");
    expect((await closed).code).toBe(1008);
  });

  it("is ended if the client does not answer pings, and if it does not read its answers", async () => {
    await using silent = await serve(async (text) => text, { pingEveryMs: 20 });
    await silent.raw();
    await vi.waitUntil(() => silent.connections.length === 1);
    await silent.connections[0]?.gone;
    await using slow = await serve(async () => "x".repeat(8 * 1024 ** 2), { drainMs: 50 });
    const socket = await slow.raw();
    socket.pause();
    for (let at = 0; at < 3; at++) socket.write(frame(0x81, "more"));
    await vi.waitUntil(() => slow.connections.length === 1);
    await slow.connections[0]?.gone;
  });

  it("is refused without the headers of a handshake", async () => {
    await using server = await serve(async (text) => text);
    const socket = await server.raw("");
    await once(socket, "close");
    expect(server.connections).toEqual([]);
  });

  it("is closed if its server fails to answer", async () => {
    await using server = await serve(async () => Promise.reject(new Error("a bug")));
    const { socket, closed } = await server.client();
    socket.send("x");
    expect((await closed).code).toBe(1011);
  });
});
