import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { FrameReader, frameOf, opcodes, WebSocketError } from "./frames.ts";

const MAX = 100_000;

/** A client's frame: the server's, with a mask. */
function masked(opcode: number, payload: Uint8Array, mask: Uint8Array, isLast = true): Buffer {
  const plain = frameOf(opcode, payload);
  const headBytes = plain.length - payload.length;
  const head = Buffer.from(plain.subarray(0, headBytes));
  head[0] = (isLast ? 128 : 0) | opcode;
  head[1] = (head[1] as number) | 128;
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ (mask[at % 4] as number))]);
}

const bytes = (maxLength: number) => fc.uint8Array({ maxLength });
const dataFrame = fc.record({
  opcode: fc.constantFrom(opcodes.continuation, opcodes.text, opcodes.binary),
  payload: fc.oneof(
    bytes(130),
    fc.integer({ min: 65_500, max: 65_600 }).map((length) => new Uint8Array(length).fill(7)),
  ),
  isLast: fc.boolean(),
});
const controlFrame = fc.record({
  opcode: fc.constantFrom(opcodes.close, opcodes.ping, opcodes.pong),
  payload: bytes(125),
  isLast: fc.constant(true),
});
const mask = fc.uint8Array({ minLength: 4, maxLength: 4 });

describe("a client's frames", () => {
  it("are read as they were sent, however their bytes arrive", () => {
    const frames = fc.array(fc.tuple(fc.oneof(dataFrame, controlFrame), mask), { maxLength: 5 });
    fc.assert(
      fc.property(frames, fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1 }), (sent, sizes) => {
        const wire = Buffer.concat(sent.map(([frame, key]) => masked(frame.opcode, frame.payload, key, frame.isLast)));
        const reader = new FrameReader(MAX);
        const read = [];
        for (let at = 0, turn = 0; at < wire.length; turn++) {
          const size = sizes[turn % sizes.length] as number;
          read.push(...reader.push(wire.subarray(at, at + size)));
          at += size;
        }
        expect(read.map(({ opcode, payload, isLast }) => [opcode, isLast, payload.equals(Buffer.from(payload))])).toEqual(
          sent.map(([{ opcode, isLast }]) => [opcode, isLast, true]),
        );
        expect(Buffer.concat(read.map(({ payload }) => payload)).equals(Buffer.concat(sent.map(([{ payload }]) => payload)))).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  it("are refused with a close code, or wait for more bytes, whatever the bytes are", () => {
    fc.assert(
      fc.property(bytes(200), (given) => {
        try {
          new FrameReader(MAX).push(Buffer.from(given));
        } catch (error) {
          expect(error).toBeInstanceOf(WebSocketError);
        }
      }),
    );
  });

  it.each([
    ["without a mask", frameOf(opcodes.text, Buffer.from("hello")), 1002],
    ["with a reserved bit", Buffer.from([0xc1, 0x80, 0, 0, 0, 0]), 1002],
    ["of an unknown kind", Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ["that are pings in pieces", Buffer.from([0x09, 0x80, 0, 0, 0, 0]), 1002],
    ["that are too long, before they arrive", Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0x7f, 0, 0, 0, 0, 0, 0, 0]), 1009],
  ])("%s are refused", (_, wire, code) => {
    expect(() => new FrameReader(MAX).push(wire)).toThrow(expect.objectContaining({ code }));
  });
});
