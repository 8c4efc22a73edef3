import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { ResponseReader } from "./response.ts";

const bytes = (text: string) => Buffer.from(text, "latin1");

/** The client's bytes when the response arrives in these pieces, and the reader afterwards. */
function hear(pieces: readonly string[]) {
  const reader = new ResponseReader();
  const heard = pieces.map((piece) => reader.read(bytes(piece), "keep-alive").toString("latin1")).join("");
  return { reader, heard };
}

/** The text in pieces that end at these positions. */
function cut(text: string, places: readonly number[]): string[] {
  const at = [0, ...places.map((place) => place % text.length).sort((a, b) => a - b), text.length];
  return at.slice(1).map((end, index) => text.slice(at[index], end));
}

const size = (text: string) => text.length.toString(16);

describe("a sandbox's response", () => {
  it("is passed on with its own headers, repeated ones too, and with the gateway's connection headers", () => {
    const { heard, reader } = hear([
      "HTTP/1.1 201 Made\r\nSet-Cookie: a=1\r\nSet-Cookie: b=2\r\nConnection: keep-alive\r\nKeep-Alive: timeout=9\r\nContent-Length: 2\r\n\r\nok",
    ]);
    expect(heard).toBe("HTTP/1.1 201 Made\r\nset-cookie: a=1\r\nset-cookie: b=2\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok");
    expect([reader.status, reader.isOver, reader.sandboxKeepsMs]).toEqual([201, true, 8_000]);
  });

  it("is the same however it is split into pieces, and ends with its last byte", () => {
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

  it("without a length lasts until the sandbox closes its connection, and so does the client's connection", () => {
    const { heard, reader } = hear(["HTTP/1.1 200 OK\r\n\r\nso", " long"]);
    expect(heard).toBe("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nso long");
    expect([reader.isOver, reader.endByClose(), reader.endsConnection]).toEqual([false, true, true]);
  });

  it("may be HTTP/1.0, after which the connection to the sandbox is not used again", () => {
    const { heard, reader } = hear(["HTTP/1.0 200 OK\r\nContent-Length: 2\r\nConnection: keep-alive\r\n\r\nok"]);
    expect(heard).toBe("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok");
    expect([reader.isOver, reader.sandboxKeepsMs]).toEqual([true, 0]);
    expect(hear(["HTTP/1.0 200\r\n\r\nso long"]).heard).toBe("HTTP/1.1 200\r\nconnection: close\r\n\r\nso long");
    expect(() => hear(["HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"])).toThrow("ambiguous");
  });

  it("is not complete when the sandbox closes its connection too early", () => {
    for (const start of [
      "",
      "HTTP/1.1 200",
      "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nno",
      "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1",
    ]) {
      expect(hear([start]).reader.endByClose()).toBe(false);
    }
  });

  it("with the same head as the one before is read from its own body, tag and connection", () => {
    const reader = new ResponseReader();
    const head = "HTTP/1.1 200 OK\r\nmcp-session-id: s\r\ncontent-length: 2\r\n\r\n";
    const next = (text: string, tag: string | undefined, connection: string) => {
      reader.start(tag);
      return reader.read(bytes(text), connection).toString("latin1");
    };
    const expected = (session: string, connection: string, body: string) =>
      `HTTP/1.1 200 OK\r\nmcp-session-id: ${session}\r\ncontent-length: 2\r\nconnection: ${connection}\r\n\r\n${body}`;
    expect(next(`${head}ab`, undefined, "keep-alive")).toBe(expected("s", "keep-alive", "ab"));
    expect(next(`${head}cd`, undefined, "keep-alive")).toBe(expected("s", "keep-alive", "cd"));
    expect(next(`${head}ef`, undefined, "close")).toBe(expected("s", "close", "ef"));
    const tagged = next(`${head}gh`, "tag", "close");
    expect(tagged).not.toContain("mcp-session-id: s\r\n");
    expect([reader.isOver, reader.sandboxKeepsMs]).toEqual([true, 4_000]);
    expect(next(`${head}i`, undefined, "close")).toBe(expected("s", "close", "i"));
    expect(reader.isOver).toBe(false);
    expect(next(`${head}jk and more`, undefined, "close")).toBe(expected("s", "close", "jk"));
    expect(reader.sandboxKeepsMs).toBe(0);
  });

  it("has no body with status 204", () => {
    expect(hear(["HTTP/1.1 204 No Content\r\n\r\n"]).reader.isOver).toBe(true);
  });

  it("comes after informational responses", () => {
    const { heard } = hear(["HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\n", "content-length: 0\r\n\r\n"]);
    expect(heard).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });

  it.each([
    ["not HTTP", "SSH-2.0-OpenSSH\r\n\r\n"],
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
