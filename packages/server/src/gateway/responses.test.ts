import type { Socket } from "node:net";
import { describe, expect, it, vi } from "vitest";
import { openGateway } from "./fixtures/gateway.ts";
import { openWire, putRawSandbox } from "./fixtures/wire.ts";

// Over plain sockets: clients and servers would hide what was really sent.

const ID = "raw-sandbox";
const ask = (method: string, more = "", body = "") =>
  `${method} /env-instance/${ID}/mcp HTTP/1.1\r\nHost: localhost\r\n${more}${body === "" ? "" : `Content-Length: ${body.length}\r\n`}\r\n${body}`;

/** A request that announces trailers takes the regular path; a plain one takes the fast path. */
const paths = { regular: "Trailer: x\r\n", fast: "" } as const;

/** Answers each request with the next of these texts, on whichever connection it arrives. */
function saying(...answers: string[]): (socket: Socket) => void {
  return (socket) => {
    socket.on("data", () => {
      const answer = answers.shift();
      if (answer !== undefined) socket.write(answer, "latin1");
    });
  };
}

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nnext";

describe.each(Object.entries(paths))("a response of a sandbox, on the %s path", (_, more) => {
  const get = ask("GET", more);

  it.each([
    ["204", "HTTP/1.1 204 No Content\r\n\r\n"],
    ["204 that says how long its body would be", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n"],
    ["204 that has a body", "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"],
    ["204 with a chunked body", "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"],
  ])("of %s is passed on without a body or a length, and the next call is answered as usual", async (_, answer) => {
    await using gateway = await openGateway(() => {});
    using _sandbox = await putRawSandbox(gateway, ID, saying(answer, OK));
    using wire = await openWire(gateway.url);
    wire.write(get);
    const first = await wire.hear(/\r\n\r\n/);
    expect(first).toMatch(/^HTTP\/1\.1 204 No Content\r\n/);
    expect(first).not.toMatch(/content-length|transfer-encoding|hello/i);
    expect(first).toMatch(/\r\n\r\n$/);
    wire.write(get);
    expect(await wire.hear(/next$/)).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(gateway.calls.map(({ end }) => end)).toEqual(["answered", "answered"]);
  });

  it("of 304 keeps its length and has no body", async () => {
    await using gateway = await openGateway(() => {});
    using _sandbox = await putRawSandbox(gateway, ID, saying('HTTP/1.1 304 Not Modified\r\nETag: "x"\r\nContent-Length: 5\r\n\r\n', OK));
    using wire = await openWire(gateway.url);
    wire.write(get);
    const answer = await wire.hear(/\r\n\r\n/);
    expect(answer).toMatch(/^HTTP\/1\.1 304 Not Modified\r\n/);
    expect(answer).toMatch(/content-length: 5\r\n/i);
    expect(answer).toMatch(/\r\n\r\n$/);
    wire.write(get);
    expect(await wire.hear(/next$/)).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it("to HEAD keeps its length and has no body", async () => {
    await using gateway = await openGateway(() => {});
    using _sandbox = await putRawSandbox(gateway, ID, saying("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", OK));
    using wire = await openWire(gateway.url);
    wire.write(ask("HEAD", more));
    const answer = await wire.hear(/\r\n\r\n/);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n.*content-length: 5\r\n/is);
    expect(answer).toMatch(/\r\n\r\n$/);
    wire.write(get);
    expect(await wire.hear(/next$/)).toMatch(/^HTTP\/1\.1 200 OK/);
  });

  it("after informational responses is passed on without them", async () => {
    await using gateway = await openGateway(() => {});
    const hints = "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";
    using _sandbox = await putRawSandbox(gateway, ID, saying(hints + OK));
    using wire = await openWire(gateway.url);
    wire.write(get);
    const answer = await wire.hear(/next$/);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).not.toMatch(/10[23]|link/i);
  });

  it.each([
    ["100 that nobody asked for", `HTTP/1.1 100 Continue\r\n\r\n${OK}`],
    ["101 that nobody asked for", "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nsecret"],
    ["101 without a protocol", `HTTP/1.1 101 Switching Protocols\r\n\r\n${OK}`],
  ])("of %s is a 502, and the connection to the sandbox is not used again", async (_, answer) => {
    await using gateway = await openGateway(() => {});
    using sandbox = await putRawSandbox(gateway, ID, saying(answer));
    using wire = await openWire(gateway.url);
    wire.write(get);
    const told = await wire.hear(/\}$/);
    expect(told).toMatch(/^HTTP\/1\.1 502 Bad Gateway\r\n.*sandbox\.lost/s);
    expect(told).not.toContain("secret");
    await vi.waitUntil(() => [...sandbox.sockets].every((socket) => socket.destroyed));
    expect(gateway.faults).toMatchObject([{ of: "sandbox", instanceId: ID }]);
  });

  it.each([
    ["with a user", "evil.com@localhost"],
    ["with a port that is none", "localhost:abc"],
    ["of two names", "localhost, evil.com"],
    ["of another name", "evil.com"],
  ])("is not requested under a Host %s", async (_, host) => {
    await using gateway = await openGateway((_, response) => void response.end("never"));
    using wire = await openWire(gateway.url);
    wire.write(get.replace("Host: localhost", `Host: ${host}`));
    expect(await wire.hear(/\}$/)).toMatch(/^HTTP\/1\.1 403 .*request\.forbidden_origin/s);
    expect(gateway.sandboxSockets.size).toBe(0);
  });
});

describe("a request with two Host headers", () => {
  it.each(["Host: localhost\r\nHost: localhost", "Host: localhost\r\nhost: evil.com", "HOST: evil.com\r\nHost: localhost"])(
    "is refused whatever they say: %j",
    async (hosts) => {
      await using gateway = await openGateway((_, response) => void response.end("never"));
      for (const path of [`/env-instance/${ID}/mcp`, "/port/x", "/health"]) {
        using wire = await openWire(gateway.url);
        wire.write(`GET ${path} HTTP/1.1\r\n${hosts}\r\n\r\n`);
        expect(await wire.hear(/\}$/)).toMatch(/^HTTP\/1\.1 403 .*request\.forbidden_origin/s);
      }
      expect(gateway.sandboxSockets.size).toBe(0);
    },
  );
});
