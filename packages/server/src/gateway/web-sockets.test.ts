import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { echoWebSocket } from "@aenv/testing/web-socket-echo";
import { describe, expect, it, vi } from "vitest";
import { AGENT_KEY, ID } from "./fixtures/gateway.ts";
import { openPort } from "./fixtures/port.ts";

const echo = () => createServer((_, response) => void response.writeHead(404).end()).on("upgrade", echoWebSocket);
const ACCEPT = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";

/** A program whose behaviour after the handshake the test defines. */
const speaking = (speak: (socket: Duplex, head: Buffer) => void) =>
  createServer().on("upgrade", (_, socket, head) => {
    socket.on("error", () => {});
    socket.write(ACCEPT);
    speak(socket, head);
  });

async function openSocket(url: string, protocols: string[] = []): Promise<WebSocket> {
  const socket = new WebSocket(url.replace("http:", "ws:"), protocols);
  socket.binaryType = "arraybuffer";
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", reject);
  });
  return socket;
}

const next = (socket: WebSocket) =>
  new Promise<unknown>((resolve) => socket.addEventListener("message", ({ data }) => resolve(data), { once: true }));
const closed = (socket: WebSocket) =>
  new Promise<{ code: number; reason: string }>((resolve) =>
    socket.addEventListener("close", ({ code, reason }) => resolve({ code, reason })),
  );

/** A client that writes the handshake itself. */
async function openRaw(url: string, path: string, more = ""): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1").on("error", () => {});
  await once(socket, "connect");
  const key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n";
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${key}${more}\r\n`);
  return socket;
}

async function heard(socket: Socket, wanted: RegExp): Promise<string> {
  let text = "";
  const listen = (bytes: Buffer) => {
    text += bytes.toString("latin1");
  };
  socket.on("data", listen);
  await vi.waitUntil(() => wanted.test(text), { timeout: 5_000 });
  socket.off("data", listen);
  return text;
}

describe("a WebSocket through a presigned link", () => {
  it("carries messages of every kind and size in both directions, and the end of the conversation", async () => {
    await using port = await openPort(echo());
    const socket = await openSocket(`${port.url}${await port.link()}/chat?room=1`, ["chat.v2", "chat.v1"]);
    expect(socket.protocol).toBe("chat.v2");
    for (const message of ["hello", "", "ü".repeat(100_000)]) {
      const answer = next(socket);
      socket.send(message);
      expect(await answer).toBe(message);
    }
    const large = new Uint8Array(5_000_000).map((_, at) => at % 251);
    const answer = next(socket);
    socket.send(large);
    expect(Buffer.compare(Buffer.from((await answer) as ArrayBuffer), large)).toBe(0);
    const end = closed(socket);
    socket.close(4_001, "enough");
    expect(await end).toEqual({ code: 4_001, reason: "enough" });
    await vi.waitUntil(() => port.calls.length === 1);
    expect(port.calls[0]).toMatchObject({ status: 101, api: "port", end: "answered", instanceId: ID });
    expect(port.uses).toEqual([`begin ${ID}`, `end ${ID}`]);
  });

  it("keeps its instance in use until it ends", async () => {
    await using port = await openPort(echo());
    const socket = await openSocket(port.url + (await port.link()));
    expect(port.uses).toEqual([`begin ${ID}`]);
    expect(port.calls).toEqual([]);
    socket.close();
    await vi.waitUntil(() => port.uses.length === 2);
  });

  it("shows the program its own address and no headers for the platform", async () => {
    const server = createServer();
    const asked = once(server, "upgrade");
    await using port = await openPort(server);
    const link = await port.link();
    using client = asDisposable(
      await openRaw(
        port.url,
        `${link}/a%2Fb?c=d`,
        `Origin: ${port.url}\r\nAuthorization: Bearer aenv_0123456789ab_secret\r\nCookie: other=secret\r\nAEnvCore-EnvInstance-ID: secret\r\nX-Own: kept\r\nSec-WebSocket-Extensions: permessage-deflate\r\n`,
      ),
    );
    const [request, socket] = await asked;
    expect([request.url, request.headers]).toMatchObject([
      "/a%2Fb?c=d",
      {
        host: "127.0.0.1:3000",
        origin: "http://127.0.0.1:3000",
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
        "sec-websocket-extensions": "permessage-deflate",
        "x-own": "kept",
      },
    ]);
    expect(JSON.stringify(request.rawHeaders)).not.toContain("secret");
    socket.write(
      `HTTP/1.1 103 Early Hints\r\n\r\n${ACCEPT.replace("\r\n\r\n", "\r\nSet-Cookie: a=1; Path=/\r\nX-Told: yes\r\n\r\n")}first words`,
    );
    const answer = await heard(client.socket, /first words$/);
    expect(answer).toMatch(/^HTTP\/1\.1 101 Switching Protocols\r\n/);
    expect(answer).toMatch(/\r\nx-told: yes\r\n/);
    expect(answer).toContain(`Path=${link}/`);
  });

  it("passes on the program's refusal unchanged, and ends", async () => {
    const refuse: RequestListener = (_, response) => void response.writeHead(403, { "x-why": "closed" }).end("members only");
    for (const program of [
      createServer(refuse),
      createServer().on("upgrade", (_, socket) => socket.end("HTTP/1.1 403 Forbidden\r\nx-why: closed\r\n\r\nmembers only")),
    ]) {
      await using port = await openPort(program);
      const client = await openRaw(port.url, await port.link());
      const answer = await heard(client, /members only(\r\n0\r\n\r\n)?$/);
      expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n.*x-why: closed\r\n.*connection: close\r\n/s);
      client.end();
      await vi.waitUntil(() => port.calls.length === 1);
      expect(port.calls[0]).toMatchObject({ status: 403, end: "answered" });
    }
  });

  it("is refused where nothing listens, through an unknown link, and by a program that does not speak HTTP", async () => {
    await using nothing = await openPort(null);
    await using odd = await openPort(createServer().on("connection", (socket) => socket.end("220 mail\r\n\r\n")));
    await using other = await openPort(
      createServer().on("upgrade", (_, socket) => socket.end("HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n")),
    );
    for (const [port, path, status, code] of [
      [nothing, await nothing.link(), 502, "sandbox.port_closed"],
      [nothing, "/port/unknown", 404, "link.not_found"],
      [odd, await odd.link(), 502, "sandbox.lost"],
      [other, await other.link(), 502, "sandbox.lost"],
    ] as const) {
      const client = await openRaw(port.url, path);
      const answer = await heard(client, /\}$/);
      expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} .*connection: close.*${code}`, "s"));
      expect(answer).not.toContain("mail");
      await vi.waitUntil(() => client.destroyed);
    }
    expect(odd.faults).toMatchObject([{ of: "sandbox", code: "sandbox.lost", instanceId: ID, api: "port" }]);
  });

  it("is refused for a request that is not a handshake", async () => {
    await using port = await openPort(echo());
    const client = await openRaw(port.url, await port.link(), "Content-Length: 5\r\n");
    expect(await heard(client, /\}$/)).toMatch(/^HTTP\/1\.1 400 .*begins with GET and without a body/s);
    client.destroy();
  });

  it("is refused for an instance or a service, through either API", async () => {
    await using port = await openPort(echo());
    for (const path of [
      `/env-instance/${ID}/mcp`,
      `/env-instance/${ID}/task/reward`,
      `/agent/${AGENT_KEY}/mcp`,
      "/env-service/x/mcp",
      "/health",
    ]) {
      const client = await openRaw(port.url, path);
      expect(await heard(client, /\}$/)).toMatch(/^HTTP\/1\.1 400 .*presigned links only/s);
      client.destroy();
    }
    expect(port.sandboxSockets.size).toBe(0);
  });

  it("closes on both sides when either disconnects", async () => {
    await using port = await openPort(speaking((socket) => void socket.resume().on("end", () => socket.end())));
    const [first, second] = [await openRaw(port.url, await port.link()), await openRaw(port.url, await port.link())];
    for (const client of [first, second]) await heard(client, /\r\n\r\n$/);
    const [one, two] = [...port.programSockets] as [Socket, Socket];
    first.destroy();
    await vi.waitUntil(() => one.destroyed);
    two.destroy();
    await vi.waitUntil(() => second.resume().destroyed);
    await vi.waitUntil(() => port.calls.length === 2);
  });

  it("is no faster than either side reads", async () => {
    const piece = Buffer.alloc(1024 * 1024);
    for (const slow of ["client", "program"]) {
      let written = 0;
      const pour = (socket: Duplex) => {
        const write = () => {
          while (!socket.destroyed && written < 400) {
            written++;
            if (!socket.write(piece)) break;
          }
        };
        socket.on("drain", write);
        write();
      };
      let receiver: Duplex | null = null;
      await using port = await openPort(
        speaking((socket) => {
          if (slow === "client") return pour(socket);
          receiver = socket.pause();
        }),
      );
      const client = await openRaw(port.url, await port.link());
      await once(client, "data");
      client.pause();
      if (slow === "program") {
        await vi.waitUntil(() => receiver !== null);
        pour(client);
      } else receiver = client;
      let before = -1;
      await vi.waitUntil(
        () => {
          const isHeld = written === before;
          before = written;
          return isHeld;
        },
        { interval: 300, timeout: 10_000 },
      );
      expect(written).toBeLessThan(100);
      (receiver as Duplex | null)?.on("data", () => {}).resume();
      await vi.waitUntil(() => written === 400, { timeout: 15_000 });
      client.destroy();
    }
  });

  it("ends when nothing passes for too long, when its link expires, and when the program does not answer", async () => {
    const now = new Date();
    const silent = createServer().on("upgrade", (_, socket) => void socket.on("error", () => {}));
    for (const [program, tunnels, lifeMs, end] of [
      [speaking(() => {}), { idleMs: 100 }, 60_000, { status: 101, end: "idle" }],
      [speaking(() => {}), {}, 200, { status: 101, end: "expired" }],
      [silent, {}, 200, { status: 404, end: "refused" }],
      [silent, { handshakeMs: 100 }, 60_000, { status: 502, end: "refused" }],
    ] as const) {
      await using port = await openPort(program, { tunnels, now: () => now });
      const client = (await openRaw(port.url, await port.link(lifeMs))).resume();
      await once(client, "close");
      expect(port.calls).toMatchObject([end]);
    }
  });

  it("is limited in number per instance", async () => {
    await using port = await openPort(echo(), { tunnels: { perInstance: 2 } });
    const sockets = [await openSocket(port.url + (await port.link())), await openSocket(port.url + (await port.link()))];
    const third = await openRaw(port.url, await port.link());
    expect(await heard(third, /\}$/)).toMatch(/^HTTP\/1\.1 429 .*quota\.exceeded/s);
    sockets[0]?.close();
    await vi.waitUntil(() => port.calls.length === 2);
    (await openSocket(port.url + (await port.link()))).close();
    sockets[1]?.close();
    await vi.waitUntil(() => port.calls.length === 4);
  });

  it("delays the stop of the server, and is closed when the grace period ends", async () => {
    await using port = await openPort(echo());
    const socket = await openSocket(port.url + (await port.link()));
    port.gateway.drain();
    const stopped = once(port.gateway.server, "close");
    port.gateway.server.close();
    port.gateway.server.closeIdleConnections();
    const answer = next(socket);
    socket.send("still there");
    expect(await answer).toBe("still there");
    const end = closed(socket);
    port.gateway.server.closeAllConnections();
    expect((await end).code).toBe(1_006);
    await stopped;
  });
});

describe("an upgrade to another protocol", () => {
  it("is ignored, and the request is answered", async () => {
    await using port = await openPort(echo());
    const client = connect(Number(new URL(port.url).port), "127.0.0.1");
    client.write(`GET /env-instance/${ID}/health HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`);
    expect(await heard(client, /API/)).toMatch(/^HTTP\/1\.1 200 OK/);
    client.destroy();
  });
});

function asDisposable(socket: Socket): Disposable & { readonly socket: Socket } {
  return { socket, [Symbol.dispose]: () => socket.destroy() };
}
