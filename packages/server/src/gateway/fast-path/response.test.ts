import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ResponseReader } from "./response.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

/** What the client hears when the answer comes in these pieces, and the reader after it. */
function hear(pieces: readonly string[]) {
  const reader = new ResponseReader();
  const heard = pieces.map((piece) => reader.read(bytes(piece), "keep-alive").toString("latin1")).join("");
  return { reader, heard };
}

/** The text in pieces that end at these places. */
function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % text.length).sort((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

const size = (text: string) => text.length.toString(16);

describe("a sandbox's answer", () => {
  it("is told with its own headers, each as often as it was said, and the connection's are ours", () => {
    const { heard, reader } = hear([
      "HTTP/1.1 201 Made\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok",
    ]);
    expect(heard).toBe("HTTP/1.1 201 Made\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok");
    expect([reader.status, reader.isOver, reader.sandboxKeepsMs]).toEqual([201, true, 8_000]);
  });

  it("is the same in whatever pieces it comes, and ends with its last byte", () => {
    const chunks = fc.array(fc.string({ unit: "binary", minLength: 1 }), { maxLength: 5 }).map((parts) => {
      const told = parts.map((part) => `${size(bytes(part).toString("latin1"))};x=1\r\n${bytes(part).toString("latin1")}\r\n`).join("");
      return { how: "transfer-encoding: chunked", body: `${told}0\r\ntrailer: 1\r\n\r\n` };
    });
    const lengths = fc.string({ unit: "binary" }).map((text) => {
      const body = bytes(text).toString("latin1");
      return { how: `content-length: ${body.length}`, body };
    });
    const places = fc.array(fc.nat(), { maxLength: 8 });
    fc.assert(
      fc.property(fc.oneof(chunks, lengths), places, ({ how, body }, at) => {
        const { heard, reader } = hear(cut(`HTTP/1.1 200 OK\r\n${how}\r\n\r\n${body}`, at));
        expect(heard).toBe(`HTTP/1.1 200 OK\r\n${how}\r\nconnection: keep-alive\r\n\r\n${body}`);
        expect(reader.isOver).toBe(true);
        const more = hear(cut(`HTTP/1.1 200 OK\r\n${how}\r\n\r\n${body}X`, at));
        expect([more.heard, more.reader.sandboxKeepsMs]).toEqual([heard, 0]);
        if (body === "") return;
        expect(hear(cut(`HTTP/1.1 200 OK\r\n${how}\r\n\r\n${body.slice(0, -1)}`, at)).reader.isOver).toBe(false);
      }),
    );
  });

  it("that says no length lasts until the sandbox hangs up, and so does the client's connection", () => {
    const { heard, reader } = hear(["HTTP/1.1 200 OK\r\n\r\nso", " long"]);
    expect(heard).toBe("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nso long");
    expect([reader.isOver, reader.endByClose(), reader.endsConnection]).toEqual([false, true, true]);
  });

  it("is not over when the sandbox hangs up too early", () => {
    for (const start of [
      "",
      "HTTP/1.1 200",
      "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1",
    ]) {
      expect(hear([start]).reader.endByClose()).toBe(false);
    }
  });

  it("has no body where HTTP says so", () => {
    expect(hear(["HTTP/1.1 204 No Content\r\n\r\n"]).reader.isOver).toBe(true);
  });

  it("comes after what was only a hint", () => {
    const { heard } = hear(["HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\n", "content-length: 0\r\n\r\n"]);
    expect(heard).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it.each([
    ["no HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
    ["two lengths", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    ["a length and chunks", "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n"],
    ["a length that is none", "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n"],
    ["a coding of its own", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n"],
    ["a head without end", `HTTP/1.1 200 OK\r\nx: ${"y".repeat(20_000)}`],
    ["a size that is none", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n"],
    ["a chunk that goes on", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nab\r\n"],
    ["a bare line feed", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\nab\r\n"],
  ])("is refused with %s", (_, text) => {
    expect(() => hear([text])).toThrow(/sandbox/);
  });
});
