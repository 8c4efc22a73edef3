import { generateKeyPairSync, randomBytes } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { describe, expect, it, onTestFinished } from "vitest";
import { connectInit } from "./connection.ts";
import { encodeFrame, type Frame, FrameDecoder, frameKind, initialWindow, maxDataBytes } from "./frame.ts";

type Send = (kind: number, payload: object | Uint8Array, stream?: number) => void;

/** An init that a program of the sandbox has taken over: `take` gets every request after the connection was opened. */
async function connectHostile(take: (request: Frame, send: Send, socket: Socket) => void) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    const send = (kind: number, stream: number, payload: object | Uint8Array) => {
      if (socket.writable)
        socket.write(encodeFrame(kind, stream, payload instanceof Uint8Array ? payload : Buffer.from(JSON.stringify(payload))));
    };
    send(frameKind.answer, 0, { protocol: 1, challenge: randomBytes(32).toString("base64"), init: "0.1.0", abilities: ["listen"] });
    const decoder = new FrameDecoder();
    let isOpen = false;
    socket.on("data", (bytes: Buffer) => {
      for (const frame of decoder.push(bytes)) {
        if (!isOpen) send(frameKind.answer, 0, { result: { generation: 0 } });
        else if (frame.kind === frameKind.request)
          take(frame, (kind, payload, stream = frame.stream) => send(kind, stream, payload), socket);
        isOpen = true;
      }
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port } = server.address() as AddressInfo;
  const { privateKey } = generateKeyPairSync("ed25519");
  const connection = await connectInit({ kind: "tcp", host: "127.0.0.1", port }, privateKey, AbortSignal.timeout(10_000));
  onTestFinished(async () => {
    await connection.close();
    server.close();
  });
  return connection;
}

describe("an init that a program of the sandbox has taken over", () => {
  // Before: all that it sent was kept until somebody read it.
  it("is disconnected when it sends more data than is read", async () => {
    let sent = 0;
    const connection = await connectHostile((_, send) => {
      send(frameKind.answer, { result: { process: 1, pid: 1 } });
      for (; sent < 64 * initialWindow; sent += maxDataBytes) send(frameKind.data, Buffer.alloc(maxDataBytes, 1));
    });
    const process = await connection.spawn({ argv: ["x"] });
    await connection.closed;
    // The first bytes went on to the reader at once. 16 MiB before.
    expect(process.stdout.readableLength).toBeLessThanOrEqual(2 * initialWindow);
    await expect(process.exited).rejects.toMatchObject({ code: "sandbox.lost" });
  });

  // Before: the whole of a file was kept for it.
  it("is not sent more than it reads, whatever it allows", async () => {
    const connection = await connectHostile((_, send, socket) => {
      send(frameKind.answer, { result: { process: 1, pid: 1 } });
      const all = Buffer.alloc(4, 0xff);
      send(frameKind.window, all);
      socket.pause();
    });
    const process = await connection.spawn({ argv: ["x"], stdin: true });
    let taken = 0;
    const part = Buffer.alloc(maxDataBytes);
    const write = () => new Promise<void>((resolve) => process.stdin.write(part, () => resolve()));
    const all = (async () => {
      for (; taken < 2_000; taken++) await write();
    })();
    // Each turn takes a part, or none for as long as nothing is read.
    for (let turn = 0; turn < 5_000; turn++) await setImmediate();
    // 1 MiB here, and what is in the buffers of the two sockets; 125 MB before.
    expect(taken * part.length).toBeLessThan(32 * 1_024 ** 2);
    await connection.close();
    await all;
  });

  it("is sent the rest when it reads again", async () => {
    let received = 0;
    const done = Promise.withResolvers<void>();
    const connection = await connectHostile((_, send, socket) => {
      send(frameKind.answer, { result: { process: 1, pid: 1 } });
      send(frameKind.window, Buffer.alloc(4, 0x0f));
      socket.pause();
      socket.on("data", (bytes: Buffer) => {
        received += bytes.length;
        if (received > 20_000_000) done.resolve();
      });
      setImmediate().then(() => socket.resume());
    });
    const process = await connection.spawn({ argv: ["x"], stdin: true });
    process.stdin.write(Buffer.alloc(20_000_000));
    await done.promise;
  });

  it("that names no connections of a port closes the port", async () => {
    const connection = await connectHostile((_, send) => {
      send(frameKind.answer, { result: { port: 80 } });
      send(frameKind.data, Buffer.alloc(1_000, "1"));
    });
    const { closed } = await connection.listen(80, () => {});
    await closed;
  });

  // Before: each got a request.
  it("that names a million connections of a port is asked for no more than it could have", async () => {
    let asked = 0;
    const connection = await connectHostile((request, send) => {
      if (!request.payload.includes("listen")) return void asked++;
      send(frameKind.answer, { result: { port: 80 } });
      for (let sent = 0; sent < 3; sent++) send(frameKind.data, Buffer.from("1\n".repeat(20_000)));
      send(frameKind.end, {});
    });
    const { closed } = await connection.listen(80, () => {});
    await closed;
    await connection.end();
    expect(asked).toBeLessThanOrEqual(1_024);
    expect(asked).toBeGreaterThan(1_000);
  });

  it("that lists more entries than it was asked for is not read further", async () => {
    const entry = { path: "x", type: "file", size: 0, mode: 0, uid: 0, gid: 0, modified_ms: 0 };
    const connection = await connectHostile((_, send) => {
      send(frameKind.answer, { result: {} });
      send(frameKind.data, Buffer.from(`${JSON.stringify(entry)}\n`.repeat(100)));
    });
    let bytes = 0;
    const list = connection.files.list({ path: "/", limit: 10, onEntry: (size) => (bytes += size) });
    await expect(list).rejects.toMatchObject({ code: "sandbox.lost", message: expect.stringContaining("more than 10 entries") });
    expect(bytes).toBe(10 * JSON.stringify(entry).length);
  });
});
