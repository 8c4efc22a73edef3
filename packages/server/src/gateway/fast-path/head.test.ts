import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readShortRequest, type ShortRequest } from "./head.ts";

const read = (text: string) => readShortRequest(Buffer.from(text, "latin1"));
const HEAD = "POST /mcp HTTP/1.1\r\nHost: localhost\r\n";

describe("a short request", () => {
  it("is read with its path, headers and body", () => {
    const text = `${HEAD}Content-Type:  application/json \r\nContent-Length: 2\r\nConnection: Keep-Alive\r\n\r\n{}`;
    expect(read(text)).toMatchObject({
      method: "POST",
      url: "/mcp",
      headers: { host: "localhost", "content-type": "application/json", "content-length": "2", connection: "Keep-Alive" },
      bodyAt: text.length - 2,
      end: text.length,
    });
  });

  it("with the same head as the connection's last one is that request, and with any other head is read anew", () => {
    const bytes = (body: string, more = "") => Buffer.from(`${HEAD}${more}Content-Length: ${body.length}\r\n\r\n${body}`, "latin1");
    const first = readShortRequest(bytes("one")) as ShortRequest;
    expect(readShortRequest(bytes("two"), first)).toBe(first);
    expect(readShortRequest(bytes("four"), first)).toMatchObject({ headers: { "content-length": "4" } });
    expect(readShortRequest(bytes("two", "X-A: b\r\n"), first)).toMatchObject({ headers: { "x-a": "b" } });
    expect(readShortRequest(Buffer.concat([bytes("two"), bytes("two")]), first)).toBe("other");
    expect(readShortRequest(bytes("two").subarray(0, -1), first)).toBe("other");
  });

  it("may send its body after its head", () => {
    expect(read(`${HEAD}Content-Length: 5\r\n\r\n`)).toBe("unfinished");
  });

  it.each([
    ["an incomplete head", "POST /mcp HTTP/1.1\r\nHost: loc"],
    ["half a body", `${HEAD}Content-Length: 5\r\n\r\nhal`],
    ["a second request behind it", `${HEAD}Content-Length: 0\r\n\r\nGET / HTTP/1.1\r\n`],
    ["chunks", `${HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["two lengths", `${HEAD}Content-Length: 2\r\nContent-Length: 0\r\n\r\n{}`],
    ["a length that is a list", `${HEAD}Content-Length: 2, 2\r\n\r\n{}`],
    ["a length with a sign", `${HEAD}Content-Length: +2\r\n\r\n{}`],
    ["a length and chunks", `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`],
    ["a folded header", `${HEAD}X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n`],
    ["a space before the colon", `${HEAD}Content-Length : 0\r\n\r\n`],
    ["a bare line feed", `${HEAD}X-A: b\nContent-Length: 5\r\n\r\n`],
    ["no host", "POST /mcp HTTP/1.1\r\nContent-Length: 0\r\n\r\n"],
    ["HTTP/1.0", "POST /mcp HTTP/1.0\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n"],
    ["a connection that is to be closed", `${HEAD}Connection: close\r\nContent-Length: 0\r\n\r\n`],
    ["an expected 100-continue", `${HEAD}Expect: 100-continue\r\nContent-Length: 0\r\n\r\n`],
    ["a HEAD request", "HEAD /mcp HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ["a tunnel", "CONNECT localhost:22 HTTP/1.1\r\nHost: localhost\r\n\r\n"],
    ["an absolute URL", "GET http://elsewhere/ HTTP/1.1\r\nHost: elsewhere\r\n\r\n"],
    ["a header named like a property of every object", `${HEAD}__proto__: x\r\nContent-Length: 0\r\n\r\n`],
    ["a long body", `${HEAD}Content-Length: 70000\r\n\r\n`],
  ])("is not %s", (_, text) => {
    expect(read(text)).toBe("other");
  });

  it("is read as Node's parser reads it, with the same end", { timeout: 60_000 }, async () => {
    await using node = await openReader();
    const known = fc.constantFrom("Host: localhost", "Content-Length: 2", "Content-Length: 0", "Connection: keep-alive", "Accept: a, b");
    const odd = fc.constantFrom(
      "Content-Length: 02",
      "Transfer-Encoding: chunked",
      "transfer-encoding : x",
      " a: b",
      "X\t: 1",
      "A:\x0b",
      "B: \xff",
    );
    const any = fc.string({ unit: "binary", maxLength: 12 }).map((value) => `X-Any:${value}`);
    const line = fc.oneof({ weight: 4, arbitrary: known }, odd, any);
    const first = fc.constantFrom(
      "POST /mcp HTTP/1.1",
      "GET /a?b=c HTTP/1.1",
      "DELETE /%41 HTTP/1.1",
      "PUT /\x7f HTTP/1.1",
      "POST  / HTTP/1.1",
    );
    const body = fc.constantFrom("", "{}", "{}{}", "0\r\n\r\n");
    let short = 0;
    const requests = fc.tuple(first, fc.array(line, { maxLength: 5 }), body);
    const check = async ([start, lines, rest]: [string, string[], string]) => {
      const bytes = Buffer.from(`${[start, "Host: localhost", ...lines].join("\r\n")}\r\n\r\n${rest}`, "latin1");
      const request = readShortRequest(bytes);
      if (typeof request === "string") return;
      short++;
      expect(await node.read(bytes)).toEqual(asNode(request, bytes));
    };
    await fc.assert(fc.asyncProperty(requests, check), { numRuns: 1_000 });
    expect(short).toBeGreaterThan(20);
  });
});

interface NodesView {
  readonly method: string | undefined;
  readonly url: string | undefined;
  readonly headers: unknown;
  readonly body: string;
}

function asNode({ method, url, headers, bodyAt, end }: ShortRequest, bytes: Buffer): NodesView {
  return { method, url, headers, body: bytes.toString("latin1", bodyAt, end) };
}

/** A request's bytes as Node's own server reads them; it must find exactly one request. */
async function openReader() {
  const seen: NodesView[] = [];
  const server = createServer(async (request: IncomingMessage, response) => {
    const { method, url, headers } = request;
    let body = "";
    for await (const piece of request.setEncoding("latin1")) body += piece;
    seen.push({ method, url, headers, body });
    response.end();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    read: async (bytes: Buffer) => {
      seen.length = 0;
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.end(bytes);
      await once(socket.resume(), "close");
      expect(seen).toHaveLength(1);
      return seen[0];
    },
    [Symbol.asyncDispose]: async () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
