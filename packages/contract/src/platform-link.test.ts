import fc from "fast-check";
import { expect, it } from "vitest";
import { FrameReader, frameHead } from "./platform-link.ts";

const channels = ["event", "stdout", "stderr"] as const;

it("frames arrive complete and in order, however the bytes are divided", () => {
  const frames = fc.array(fc.record({ channel: fc.constantFrom(...channels), data: fc.uint8Array({ maxLength: 30 }) }), { maxLength: 10 });
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 20 }), { minLength: 1 }), (sent, sizes) => {
      const bytes = Buffer.concat(sent.flatMap(({ channel, data }) => [frameHead(channel, data.length), data]));
      const reader = new FrameReader();
      const received: { channel: string; data: number[] }[] = [];
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const size = sizes[turn % sizes.length] as number;
        for (const { channel, data } of reader.push(bytes.subarray(at, at + size))) received.push({ channel, data: [...data] });
        at += size;
      }
      // Output may come in parts, an event never does.
      const merge = (all: readonly { channel: string; data: number[] }[]) =>
        all.reduce<{ channel: string; data: number[] }[]>((done, one) => {
          const last = done.at(-1);
          if (last?.channel === one.channel && one.channel !== "event") last.data.push(...one.data);
          else done.push({ channel: one.channel, data: [...one.data] });
          return done;
        }, []);
      const plain = sent.filter(({ data }) => data.length > 0).map(({ channel, data }) => ({ channel, data: [...data] }));
      expect(merge(received)).toEqual(merge(plain));
    }),
  );
});

it("an unknown channel is an error", () => {
  expect(() => [...new FrameReader().push(Uint8Array.of(9, 0, 0, 0, 1, 1))]).toThrow("unknown channel 9");
});

it("an event that is announced with more than a MiB is an error before it arrives", () => {
  const reader = new FrameReader();
  expect(() => [...reader.push(frameHead("event", 2 ** 32 - 1))]).toThrow("larger than 1048576 bytes");
  expect([...new FrameReader().push(frameHead("stdout", 2 ** 32 - 1))]).toEqual([]);
});
