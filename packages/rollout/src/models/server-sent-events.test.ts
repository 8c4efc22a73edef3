import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { cut, cuts } from "../fixtures/pieces.ts";
import { serverSentEvents } from "./server-sent-events.ts";

async function read(pieces: readonly Uint8Array[]): Promise<string[]> {
  async function* stream() {
    yield* pieces;
  }
  const found: string[] = [];
  for await (const data of serverSentEvents(stream())) found.push(data);
  return found;
}

const encode = (text: string) => new TextEncoder().encode(text);

describe("a stream of server-sent events", () => {
  it.each([
    ["with each end of line", "data: a\n\ndata: b\r\n\r\ndata: c\r\rdata: d\n\n", ["a", "b", "c", "d"]],
    ["with comments and other fields", ": ping\n\nevent: x\nid: 1\ndata: a\nretry: 3\n\n", ["a"]],
    ["with data on several lines", "data: a\ndata:b\ndata\n\n", ["a\nb"]],
    ["whose last event has no empty line after it", "data: a\n\ndata: b\n", ["a", "b"]],
    ["without events", "\n\n: nothing\n\n", []],
  ])("%s", async (_, text, expected) => {
    expect(await read([encode(text)])).toEqual(expected);
  });

  it("gives the same events however its bytes are cut, also within a character", async () => {
    const line = fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[\r\n]/g, ""));
    const end = fc.constantFrom("\n", "\r\n", "\r");
    const stream = fc.array(fc.tuple(line, end)).map((events) => ({
      bytes: encode(events.map(([data, eol]) => `data: ${data}${eol}${eol}`).join("")),
      data: events.map(([data]) => data),
    }));
    await fc.assert(
      fc.asyncProperty(
        stream.chain(({ bytes, data }) => fc.record({ bytes: fc.constant(bytes), data: fc.constant(data), places: cuts(bytes.length) })),
        async ({ bytes, data, places }) => {
          const expected = data.map((text) => new TextDecoder().decode(encode(text)));
          expect(await read(cut(bytes, places))).toEqual(expected);
        },
      ),
    );
  });
});
