import type { IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, it, vi } from "vitest";
import { openGateway } from "./fixtures/gateway.ts";
import { openWire, putRawSandbox } from "./fixtures/wire.ts";
import { LookAhead, RequestBody } from "./request-body.ts";

const DEAF = "deaf-sandbox";
const soon = { timeout: 10_000 };
const post = (length: number) => `POST /env-instance/${DEAF}/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`;

describe("a client that disconnects while its sandbox does not read", () => {
  it.each([
    ["a short request", 60_000],
    ["a request of a megabyte", 1_000_000],
    ["a request that is larger than all buffers between client and sandbox", 14_000_000],
  ])("is detected within %s, and its call is released", async (_, length) => {
    await using gateway = await openGateway(() => {});
    using sandbox = await putRawSandbox(gateway, DEAF, (socket) => void socket.pause());
    using wire = await openWire(gateway.url);
    wire.write(post(length));
    pour(wire.socket, length);
    await vi.waitUntil(() => sandbox.sockets.size === 1 && gateway.uses.length === 1, soon);
    await vi.waitUntil(() => wire.socket.writableLength === 0, soon);
    wire.socket.destroy();
    await vi.waitUntil(() => gateway.calls.length === 1, soon);
    expect(gateway.calls).toMatchObject([{ end: "left", instanceId: DEAF }]);
    expect(gateway.uses).toEqual([`begin ${DEAF}`, `end ${DEAF}`]);
    expect(gateway.faults).toEqual([]);
  });

  it("has its call aborted after a while if the request is too large to read ahead, and so has a client that waits", async () => {
    await using gateway = await openGateway(() => {}, { stall: { lookAfterMs: 100, giveUpAfterMs: 300 } });
    using _sandbox = await putRawSandbox(gateway, DEAF, (socket) => void socket.pause());
    using leaving = await openWire(gateway.url);
    using waiting = await openWire(gateway.url);
    for (const { socket, write } of [leaving, waiting]) {
      write(post(1_000_000_000));
      pour(socket, 1_000_000_000);
    }
    await vi.waitUntil(() => gateway.uses.length === 2, soon);
    leaving.socket.destroy();
    await waiting.hear(/^HTTP\/1\.1 504 .*request\.timeout/s);
    await vi.waitUntil(() => gateway.calls.length === 2, soon);
    expect(gateway.uses.slice(2)).toEqual([`end ${DEAF}`, `end ${DEAF}`]);
  });

  it("is distinguished from one that waits, whose request continues when the sandbox reads", async () => {
    await using gateway = await openGateway(() => {});
    let received = 0;
    const length = 30_000_000;
    using sandbox = await putRawSandbox(gateway, DEAF, (socket) => {
      socket.pause().on("data", (bytes) => {
        received += bytes.length;
        if (received >= length) socket.end("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ndone");
      });
    });
    using wire = await openWire(gateway.url);
    wire.write(post(length));
    wire.socket.write(Buffer.alloc(length));
    await vi.waitUntil(() => sandbox.sockets.size === 1, soon);
    // The gateway has read ahead now, and has found no end.
    await untilStill(() => wire.socket.bytesWritten - wire.socket.writableLength);
    for (const socket of sandbox.sockets) socket.resume();
    await wire.hear(/^HTTP\/1\.1 200 OK.*done$/s);
    expect(received).toBeGreaterThanOrEqual(length);
  });
});

describe("a request's body", () => {
  const limits = { lookAfterMs: 1, giveUpAfterMs: 60_000 };

  function open(lookAhead = new LookAhead()) {
    const request = new PassThrough({ highWaterMark: 1 });
    return { request, lookAhead, body: new RequestBody(request as unknown as IncomingMessage, lookAhead, limits, () => {}) };
  }

  it("is buffered up to the usual limit at first, and beyond it when the sandbox does not read", async () => {
    const { request, lookAhead, body } = open();
    const before = lookAhead.left;
    request.write(Buffer.alloc(64 * 1024));
    await vi.waitUntil(() => lookAhead.left < before);
    expect(request.isPaused()).toBe(false);
    const taking = body[Symbol.asyncIterator]();
    expect((await taking.next()).value).toHaveLength(64 * 1024);
    expect(lookAhead.left).toBe(before);
  });

  it("shares the memory for reading ahead with other requests, and always returns it", async () => {
    const lookAhead = new LookAhead(20 * 1024 * 1024);
    const all = [open(lookAhead), open(lookAhead), open(lookAhead)];
    for (const { request } of all) request.write(Buffer.alloc(64 * 1024));
    await vi.waitUntil(() => lookAhead.left === 0);
    all[0]?.body.stop();
    all[1]?.request.destroy(new Error("gone"));
    await expect(takeAll(all[1]?.body)).rejects.toThrow("gone");
    all[2]?.request.end();
    expect(await takeAll(all[2]?.body)).toBe(64 * 1024);
    expect(lookAhead.left).toBe(20 * 1024 * 1024);
  });
});

/** Writes as much as the connection accepts, until everything is sent. */
function pour(socket: Socket, length: number): void {
  const piece = Buffer.alloc(Math.min(length, 1_000_000));
  let left = length;
  const write = () => {
    while (left > 0) {
      left -= piece.length;
      if (!socket.write(piece)) return;
    }
  };
  socket.on("drain", write);
  write();
}

async function takeAll(body: RequestBody | undefined): Promise<number> {
  let size = 0;
  for await (const piece of body ?? []) size += piece.length;
  return size;
}

/** Waits until a number has been constant for longer than the gateway waits before it reads ahead. */
async function untilStill(read: () => number): Promise<void> {
  let before = -1;
  await vi.waitUntil(
    () => {
      const isStill = read() === before;
      before = read();
      return isStill;
    },
    { interval: 1_500, timeout: 15_000 },
  );
}
