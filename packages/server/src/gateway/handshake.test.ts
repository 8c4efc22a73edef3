import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { acceptedHead, handshakeHead, readHandshake } from "./handshake.ts";

const ACCEPT = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: x=\r\n\r\n";
const HINT = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n";

describe("a program's response to a handshake", () => {
  const hints = fc.nat({ max: 3 }).map((count) => HINT.repeat(count));

  it("is unfinished until its head is complete, then accepted, with the bytes that follow", () => {
    fc.assert(
      fc.property(hints, fc.uint8Array({ maxLength: 20 }), fc.nat(), (before, after, cut) => {
        const head = Buffer.from(before + ACCEPT, "latin1");
        expect(readHandshake(head.subarray(0, cut % head.length)).kind).toBe("unfinished");
        const answer = readHandshake(Buffer.concat([head, after]));
        expect(answer).toMatchObject({ kind: "accepted", head: { status: 101 }, rest: Buffer.from(after) });
      }),
    );
  });

  it("is a refusal if it is any other final response, kept whole without the informational ones before it", () => {
    fc.assert(
      fc.property(hints, fc.integer({ min: 200, max: 599 }), (before, status) => {
        const refusal = `HTTP/1.1 ${status} No\r\ncontent-length: 2\r\n\r\n`;
        expect(readHandshake(Buffer.from(`${before}${refusal}no`))).toMatchObject({
          kind: "refused",
          head: { text: refusal },
          rest: Buffer.from("no"),
        });
      }),
    );
  });

  it.each(["220 mail\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\n\r\n", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"])(
    "is none if it is %j",
    (text) => expect(() => readHandshake(Buffer.from(text))).toThrow(),
  );

  it("is passed on with its own headers, and with the gateway's hop-by-hop headers", () => {
    const answer = readHandshake(Buffer.from(ACCEPT.replace("\r\n\r\n", "\r\nKeep-Alive: timeout=5\r\nX-A: 1\r\nX-A: 2\r\n\r\n")));
    const head = answer.kind === "accepted" ? acceptedHead(answer.head, (headers) => ({ ...headers, more: "said" })) : "";
    expect(head.split("\r\n")).toEqual([
      "HTTP/1.1 101 Switching Protocols",
      "sec-websocket-accept: x=",
      "x-a: 1",
      "x-a: 2",
      "more: said",
      "connection: Upgrade",
      "upgrade: websocket",
      "",
      "",
    ]);
  });
});

it("a handshake is written with the path unchanged", () => {
  expect(handshakeHead("/a%2Fb?c", { host: "127.0.0.1:3000", cookie: ["a=1", "b=2"] })).toBe(
    "GET /a%2Fb?c HTTP/1.1\r\nhost: 127.0.0.1:3000\r\ncookie: a=1\r\ncookie: b=2\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n",
  );
});
