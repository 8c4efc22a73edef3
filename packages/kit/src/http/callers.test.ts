import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { networkInterfaces } from "node:os";
import { afterEach, describe, expect, it } from "vitest";
import { acceptOnly, type Callers, isFromOwnMachine } from "./callers.ts";

const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});

/** A server that echoes the body and path of each request, and records the paths. */
async function listen(callers: Callers, host: string) {
  const requests: string[] = [];
  const server = createServer(async (request, response) => {
    requests.push(request.url ?? "");
    let body = "";
    for await (const piece of request.setEncoding("utf8")) body += piece;
    response.end(`${request.url} ${body}`);
  });
  servers.push(server);
  acceptOnly(server, callers);
  server.listen(0, host);
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, requests };
}

/** All that a server answers to these pieces, each of which is sent on its own. */
async function answerTo(where: { host: string; port: number }, ...pieces: readonly string[]): Promise<string> {
  const socket = connect(where).setNoDelay().setEncoding("utf8");
  let text = "";
  socket.on("data", (piece: string) => (text += piece));
  await once(socket, "connect");
  for (const piece of pieces) await new Promise((resolve) => socket.write(piece, () => setImmediate(resolve)));
  socket.end();
  await once(socket, "close");
  return text;
}

const GET = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`;
const POST = "POST /reset HTTP/1.1\r\nhost: x\r\ncontent-length: 5\r\nconnection: close\r\n\r\nfive!";

describe("a server for callers from outside", () => {
  const own = Object.values(networkInterfaces())
    .flatMap((all) => all ?? [])
    .find(({ family, internal }) => family === "IPv4" && !internal)?.address;

  const ownAddress: [string, string, string][] =
    own === undefined
      ? []
      : [
          ["the machine's own address", "0.0.0.0", own],
          ["the machine's own address in an IPv6 address", "::", own],
        ];

  it.each([
    ["loopback", "0.0.0.0", "127.0.0.1"],
    ["another loopback address", "0.0.0.0", "127.0.0.9"],
    ["loopback in an IPv6 address", "::", "127.0.0.1"],
    ["IPv6 loopback", "::", "::1"],
    ...ownAddress,
  ])("refuses %s before it reads a request", async (_, host, to) => {
    const { port, requests } = await listen({ kind: "outside" }, host);
    const answer = await answerTo({ host: to, port }, GET("/episode/oracle"));
    expect(answer).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(JSON.parse(answer.slice(answer.indexOf("{")))).toMatchObject({
      success: false,
      error: expect.stringContaining("programs in the sandbox of an environment"),
      errorInfo: { code: "access.denied", retryable: false },
    });
    expect(requests).toEqual([]);
  });

  it.each([
    ["10.1.2.1", "10.1.2.2", false],
    ["10.1.2.2", "10.1.2.2", true],
    ["::ffff:10.1.2.1", "::ffff:10.1.2.2", false],
    ["::ffff:10.1.2.2", "::ffff:10.1.2.2", true],
    ["::ffff:127.3.2.1", "::ffff:10.1.2.2", true],
    ["127.0.0.1", "10.1.2.2", true],
    ["fd00::1", "fd00::2", false],
    ["fd00::2", "fd00::2", true],
    ["fe80::2%eth0", "fe80::2", true],
    [undefined, "10.1.2.2", true],
  ])("takes %s for a program of the machine %s: %s", (remoteAddress, localAddress, isOwn) => {
    expect(isFromOwnMachine({ remoteAddress, localAddress })).toBe(isOwn);
  });

  it.skipIf(own === undefined)("refuses every address of the machine, whichever the client was called on", () => {
    expect(isFromOwnMachine({ remoteAddress: own as string, localAddress: "10.255.1.2" })).toBe(true);
  });
});

describe("a server for callers with a key", () => {
  const key = randomBytes(32);
  const callers = { kind: "key", digest: createHash("sha256").update(key).digest("hex") } as const;
  const greeting = `aenv-caller ${key.toString("base64url")}\n`;

  it.each([
    ["in one piece", [`${greeting}${POST}`]],
    ["in two pieces", [greeting, POST]],
    ["in many pieces", [...`${greeting}${POST}`]],
  ])("answers requests after the key, %s", async (_, pieces) => {
    const { port, requests } = await listen(callers, "127.0.0.1");
    expect(await answerTo({ host: "127.0.0.1", port }, ...pieces)).toMatch(/^HTTP\/1\.1 200 OK\r\n[\s\S]*\/reset five!/);
    expect(requests).toEqual(["/reset"]);
  });

  it.each([
    ["no key", GET("/a-path-that-is-longer-than-the-key-so-that-all-of-its-bytes-are-there")],
    ["another key", `aenv-caller ${randomBytes(32).toString("base64url")}\n${GET("/")}`],
    ["the digest of the key", `aenv-caller ${Buffer.from(callers.digest, "hex").toString("base64url")}\n${GET("/")}`],
    ["less than a key", "aenv-caller "],
    ["nothing", ""],
  ])("refuses a client that sends %s", async (_, text) => {
    const { port, requests } = await listen(callers, "127.0.0.1");
    expect(await answerTo({ host: "127.0.0.1", port }, text)).toMatch(/^HTTP\/1\.1 403 Forbidden\r\n/);
    expect(requests).toEqual([]);
  });
});
