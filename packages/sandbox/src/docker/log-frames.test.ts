import fc from "fast-check";
import { expect, it } from "vitest";
import { LogFrames } from "./log-frames.ts";

function frame(output: number, text: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header[0] = output;
  header.writeUInt32BE(text.length, 4);
  return Buffer.concat([header, text]);
}

/** The pieces of some bytes, cut at these places. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const at = [...new Set(places.map((place) => place % (bytes.length + 1)))].sort((a, b) => a - b);
  return [...at, bytes.length].map((end, index) => bytes.subarray(at[index - 1] ?? 0, end));
}

it("yields the lines of each output in order, wherever frames, lines and characters are cut", () => {
  const lines = fc.array(fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\n", " ")));
  const cuts = fc.array(fc.nat());
  fc.assert(
    fc.property(lines, lines, cuts, cuts, cuts, (first, second, cutsOfFirst, cutsOfSecond, cutsOfStream) => {
      const framesOf = (output: number, texts: readonly string[], places: readonly number[]) =>
        cut(Buffer.from(texts.map((text) => `${output}${text}\n`).join("")), places).map((part) => frame(output, part));
      const [one, two] = [framesOf(1, first, cutsOfFirst), framesOf(2, second, cutsOfSecond)];
      const mixed = Array.from({ length: Math.max(one.length, two.length) }, (_, at) => [one[at], two[at]]).flat();
      const frames = new LogFrames();
      const stream = Buffer.concat(mixed.filter((part) => part !== undefined));
      const read = [...cut(stream, cutsOfStream).flatMap((part) => frames.push(part)), ...frames.finish()];
      for (const [output, texts] of [
        ["1", first],
        ["2", second],
      ] as const)
        expect(read.filter((line) => line.startsWith(output))).toEqual(texts.map((text) => output + text));
    }),
  );
});

it("yields a last line without an end when the log ends", () => {
  const frames = new LogFrames();
  expect(frames.push(frame(1, Buffer.from("one\ntwo")))).toEqual(["one"]);
  expect(frames.finish()).toEqual(["two"]);
});

it("a frame that is announced with gigabytes is an error before it arrives", () => {
  const head = Buffer.from([1, 0, 0, 0, 255, 255, 255, 255]);
  expect(() => new LogFrames().push(head)).toThrow("larger than 16777216 bytes");
});
