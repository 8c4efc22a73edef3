import { once } from "node:events";
import { createServer } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { LINK_PROTOCOL } from "@aenv/contract";
import { describe, expect, it } from "vitest";
import type { Handlers } from "./link-request.ts";
import { Links } from "./links.ts";
import type { ParameterLimits } from "./request-body.ts";
import { LinkRequests } from "./requests.ts";

/** The process of an environment whose code writes what it likes to the connection of the platform. */
async function hostile(parameters?: ParameterLimits) {
  const opened = Promise.withResolvers<ClientHttp2Session>();
  const server = createServer().on("upgrade", (_, socket: Socket) => {
    socket.on("error", () => {});
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: ${LINK_PROTOCOL}\r\n\r\n`);
    const session = connect("http://platform", { createConnection: () => socket, maxSessionMemory: 1_000 }).on("error", () => {});
    // The limits of the platform have arrived.
    session.once("remoteSettings", () => opened.resolve(session));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const requests = new LinkRequests({
    // No request of these tests gets as far as its handler.
    handlers: () => ({}) as Handlers,
    idleMs: 60_000,
    onFailure: () => {},
    ...(parameters !== undefined && { parameters }),
  });
  let streams = 0;
  let most = 0;
  const links = new Links({
    answer: (hostId, stream, headers) => {
      most = Math.max(most, ++streams);
      stream.once("close", () => streams--);
      requests.answer(hostId, stream, headers);
    },
    onFailure: () => {},
  });
  await links.open({ id: "host", address: { kind: "tcp", host: "127.0.0.1", port: (server.address() as AddressInfo).port } });
  const session = await opened.promise;
  return {
    session,
    most: () => most,
    closed: new Promise<void>((resolve) => session.once("close", () => resolve())),
    post: (path = "/run", more: Record<string, string> = {}) =>
      session.request({ ":method": "POST", ":path": path, ...more }).on("error", () => {}),
    async [Symbol.asyncDispose]() {
      links.close();
      session.destroy();
      server.close();
    },
  };
}

async function answerOf(stream: ClientHttp2Stream): Promise<{ code?: string; message?: string }> {
  const parts: Buffer[] = [];
  for await (const part of stream) parts.push(part as Buffer);
  return JSON.parse(Buffer.concat(parts).toString("utf8"));
}

describe("the connection of the platform to an environment", () => {
  // Before: 1,000 requests were accepted at once.
  it("has at most 256 requests at a time, and further ones wait", async () => {
    await using process = await hostile();
    const all = Array.from({ length: 1_000 }, () => process.post());
    await expect.poll(() => process.most()).toBe(256);
    // Each that ends makes room for one that waits.
    const answers = Promise.all(all.map(answerOf));
    for (const stream of all) stream.end("{}\n");
    expect((await answers).map(({ code }) => code)).toEqual(Array(1_000).fill("request.invalid"));
    expect(process.most()).toBe(256);
  });

  // Before: 420 MB were held, for any time.
  it("holds at most 32 MiB of unfinished parameters: most of 60 requests with 7 MB each that never end are refused", {
    timeout: 90_000,
  }, async () => {
    await using process = await hostile({ maxBytes: 8 * 2 ** 20, timeoutMs: 120_000 });
    const all = Array.from({ length: 60 }, () => process.post());
    const refused: unknown[] = [];
    for (const stream of all)
      void answerOf(stream).then(
        ({ code }) => refused.push(code),
        () => {},
      );
    const part = Buffer.alloc(7_000_000, " ");
    for (const stream of all) stream.write(part);
    await expect.poll(() => refused.length, { timeout: 60_000 }).toBeGreaterThanOrEqual(50);
    expect(new Set(refused)).toEqual(new Set(["quota.exceeded"]));
    // The others may go on: the process has room again.
    const next = process.post();
    next.end("{}\n");
    expect(await answerOf(next)).toMatchObject({ code: "request.invalid" });
  });

  // Before: there was no time limit.
  it("refuses parameters that do not arrive in time", async () => {
    await using process = await hostile({ maxBytes: 1_000, timeoutMs: 20 });
    const stream = process.post();
    stream.write("{");
    expect(await answerOf(stream)).toMatchObject({ code: "request.too_slow", message: "the parameters did not arrive within 20 ms" });
  });

  // Before: 8 MiB for every request, and 40,000 levels were parsed.
  it("refuses parameters that are too large for their request, or nested too deeply", async () => {
    await using process = await hostile();
    const large = process.post("/close");
    large.write("x".repeat(64 * 1_024 + 1));
    expect(await answerOf(large)).toMatchObject({ code: "request.too_large", message: "the parameters are larger than 65536 bytes" });
    const deep = process.post();
    deep.end(`${"[".repeat(40_000)}${"]".repeat(40_000)}\n`);
    expect(await answerOf(deep)).toMatchObject({ code: "request.invalid", message: expect.stringContaining("deeper than 200 levels") });
    const many = process.post();
    many.end(`[${"1,".repeat(200_000)}1]\n`);
    expect(await answerOf(many)).toMatchObject({ code: "request.invalid", message: expect.stringContaining("more than 200000 values") });
  });

  it("takes parameters that arrive in single bytes, and the content after them", async () => {
    await using process = await hostile({ maxBytes: 1_000, timeoutMs: 10_000 });
    const stream = process.post("/close");
    for (const byte of '{"sandbox": 1}\n and more') stream.write(byte);
    expect(await answerOf(stream)).toMatchObject({ code: "request.invalid", message: "/close: sandbox must be a string" });
  });

  it("does not repeat a long path in its error", async () => {
    await using process = await hostile();
    const { message = "" } = await answerOf(process.post(`/${"x".repeat(7_000)}`).end("{}\n"));
    expect(message.length).toBeLessThan(200);
  });

  it("refuses a request with too many headers", async () => {
    await using process = await hostile();
    const headers = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`x-${at}`, "1"]));
    const stream = process.post("/close", headers);
    const answered = once(stream, "response") as Promise<[IncomingHttpHeaders]>;
    const closed = new Promise((resolve) => stream.once("close", () => resolve("closed")));
    expect(await Promise.race([answered, closed])).toBe("closed");
    expect(process.most()).toBe(0);
  });

  it("ends when requests are opened and cancelled without a pause", async () => {
    await using process = await hostile();
    const flood = () => {
      for (let count = 0; count < 100 && !process.session.destroyed; count++) process.post().close(8);
      if (!process.session.destroyed) setImmediate(flood);
    };
    flood();
    await process.closed;
  });

  // Before: any number was answered.
  it.each([
    ["pings", (session: ClientHttp2Session) => void session.ping(() => {})],
    ["settings", (session: ClientHttp2Session) => session.settings({ initialWindowSize: 65_535 })],
  ])("ends when %s are sent without a pause", async (_, send) => {
    await using process = await hostile();
    let sent = 0;
    const flood = () => {
      for (let count = 0; count < 5 && !process.session.destroyed; count++, sent++) send(process.session);
      if (!process.session.destroyed && sent < 100_000) setImmediate(flood);
    };
    flood();
    await process.closed;
    expect(sent).toBeLessThan(100_000);
  });
});
