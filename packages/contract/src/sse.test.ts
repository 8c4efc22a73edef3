import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { SseDecoder, type SseEvent, sseEvents } from "./sse.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

function decode(chunks: readonly Uint8Array[]): SseEvent[] {
  const decoder = new SseDecoder(Number.POSITIVE_INFINITY);
  return chunks.flatMap((chunk) => decoder.push(chunk));
}

const line = fc.string({ unit: "grapheme" }).map((text) => text.replace(/[\r\n]/g, ""));
const event = fc.record({
  event: line.filter((name) => name !== "" && !name.startsWith(" ")),
  data: fc.array(line, { minLength: 1, maxLength: 4 }),
});
const lineEnd = fc.constantFrom("\n", "\r\n", "\r");

describe("SseDecoder", () => {
  it("decodes events with any line ends, comments and chunks", () => {
    const streams = fc.record({ events: fc.array(fc.tuple(event, line)), end: lineEnd, cuts: fc.array(fc.nat()) });
    fc.assert(
      fc.property(streams, ({ events, end, cuts }) => {
        const lines = events.flatMap(([one, comment]) => [
          `:${comment}`,
          `event: ${one.event}`,
          ...one.data.map((text) => `data: ${text}`),
          `unknown: ${comment}`,
          "",
        ]);
        const whole = bytes(lines.map((text) => text + end).join(""));
        const expected = events.map(([one]) => ({ event: one.event, data: one.data.join("\n") }));
        expect(decode(cut(whole, cuts))).toEqual(expected);
      }),
    );
  });

  it("decodes different line ends in one stream", () => {
    const ends = fc.array(fc.tuple(line, lineEnd), { minLength: 1 });
    fc.assert(
      fc.property(ends, fc.array(fc.nat()), (lines, cuts) => {
        const text = lines.map(([data, end]) => `data:${data.startsWith(" ") ? ` ${data}` : data}${end}`).join("");
        expect(decode(cut(bytes(`${text}\n\n`), cuts))).toEqual([{ event: "message", data: lines.map(([data]) => data).join("\n") }]);
      }),
    );
  });

  it("returns an event as soon as its empty line has arrived, even between CR and LF", () => {
    const decoder = new SseDecoder(Number.POSITIVE_INFINITY);
    expect(decoder.push(bytes("data: a\r\n\r"))).toEqual([{ event: "message", data: "a" }]);
    expect(decoder.push(bytes("\ndata: b\n\n"))).toEqual([{ event: "message", data: "b" }]);
  });

  it("drops an incomplete event at the end of the stream", () => {
    expect(decode([bytes("data: whole\n\ndata: half")])).toEqual([{ event: "message", data: "whole" }]);
  });

  it("ignores pings, ids, retries and events without data, and removes one space only", () => {
    const text = ": ping\n\nid: 7\nretry: 10\n\nevent: x\n\ndata:  two\ndata\n\n";
    expect(decode([bytes(text)])).toEqual([{ event: "message", data: " two\n" }]);
  });

  it("ignores a byte order mark", () => {
    expect(decode([bytes("\uFEFFdata: a\n\n")])).toEqual([{ event: "message", data: "a" }]);
  });
});

/** The bytes in pieces, cut anywhere, also inside a character. */
function cut(whole: Uint8Array, cuts: readonly number[]): Uint8Array[] {
  const places = [...new Set(cuts.map((place) => (whole.length === 0 ? 0 : place % whole.length)))].sort((a, b) => a - b);
  const bounds = [0, ...places, whole.length];
  return bounds.slice(1).map((end, at) => whole.slice(bounds[at], end));
}

it("a whole stream may end without the empty line after its last event", () => {
  expect(sseEvents("data: 1\r\n\r\nevent: end\ndata: 2").map(({ event, data }) => [event, data])).toEqual([
    ["message", "1"],
    ["end", "2"],
  ]);
});
