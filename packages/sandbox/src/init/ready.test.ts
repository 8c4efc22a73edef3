import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { connectStartingInit } from "./ready.ts";

const { privateKey } = generateKeyPairSync("ed25519");

describe("the connection to an init that has just been started", () => {
  const ends: (() => void)[] = [];
  afterEach(() => {
    for (const end of ends.splice(0)) end();
  });

  it("is tried again and again, side by side, on a network that says nothing, until nobody waits for it", async () => {
    const stop = new AbortController();
    const sockets: Socket[] = [];
    let closedEarly = 0;
    const server = createServer((socket) => {
      sockets.push(socket.on("error", () => undefined).resume());
      socket.once("close", () => stop.signal.aborted || closedEarly++);
      if (sockets.length === 4) stop.abort(new Error("not wanted any more"));
    }).listen(0, "127.0.0.1");
    ends.push(() => {
      for (const socket of sockets) socket.destroy();
      server.close();
    });
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const connecting = connectStartingInit({ kind: "tcp", host: "127.0.0.1", port }, privateKey, stop.signal);
    await expect(connecting).rejects.toThrow("not wanted any more");
    expect(sockets).toHaveLength(4);
    expect(closedEarly).toBe(0);
    await Promise.all(sockets.map((socket) => socket.closed || once(socket, "close")));
  });

  it("waits for the announcement, if there is one, and for nothing once nobody wants it", async () => {
    let attempts = 0;
    const server = createServer((socket) => {
      attempts++;
      socket.destroy();
    }).listen(0, "127.0.0.1");
    ends.push(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const address = { kind: "tcp", host: "127.0.0.1", port } as const;
    const { promise: listening, resolve: announce } = Promise.withResolvers<void>();
    const options = { listening, nextAttemptMs: 60_000 };
    const connecting = connectStartingInit(address, privateKey, new AbortController().signal, options);
    const cancelled = connectStartingInit(address, privateKey, AbortSignal.abort(new Error("not wanted")), { listening });
    await expect(cancelled).rejects.toThrow("not wanted");
    expect(attempts).toBe(0);
    announce();
    await expect(connecting).rejects.toThrow("cannot connect to the sandbox's init");
    expect(attempts).toBe(1);
  });

  it("is tried without an announcement too, after a while", async () => {
    const server = createServer((socket) => void socket.destroy()).listen(0, "127.0.0.1");
    ends.push(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const never = new Promise<void>(() => undefined);
    const connecting = connectStartingInit({ kind: "tcp", host: "127.0.0.1", port }, privateKey, new AbortController().signal, {
      listening: never,
      announcedWithinMs: 1,
    });
    await expect(connecting).rejects.toThrow("cannot connect to the sandbox's init");
  });
});
