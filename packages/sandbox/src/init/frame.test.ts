import fc from "fast-check";
import { expect, it } from "vitest";
import { encodeFrame, FrameDecoder, maxFrameBytes } from "./frame.ts";

const frames = fc.array(
  fc.record({
    kind: fc.nat(255),
    stream: fc.nat(0xffffffff),
    payload: fc.uint8Array({ maxLength: 100 }).map((bytes) => Buffer.from(bytes)),
  }),
);

it("decodes what was encoded, wherever the bytes are cut", () => {
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (sent, cuts) => {
      const bytes = Buffer.concat(sent.map(({ kind, stream, payload }) => encodeFrame(kind, stream, payload)));
      const decoder = new FrameDecoder();
      const received = [];
      for (let at = 0, i = 0; at < bytes.length; i++) {
        const size = cuts[i % cuts.length] ?? 1;
        received.push(...decoder.push(bytes.subarray(at, at + size)));
        at += size;
      }
      expect(received).toEqual(sent);
    }),
  );
});

it("refuses a length that no frame can have", () => {
  fc.assert(
    fc.property(fc.oneof(fc.nat(4), fc.integer({ min: maxFrameBytes + 1, max: 0xffffffff })), (length) => {
      const head = Buffer.alloc(9);
      head.writeUInt32BE(length);
      expect(() => [...new FrameDecoder().push(head)]).toThrow(`a frame of ${length} bytes`);
    }),
  );
});
