import type { PlatformError } from "@aenv/contract";
import fc from "fast-check";
import { expect, it } from "vitest";
import { HeldBytes } from "./held-bytes.ts";

const LIMITS = { perHost: 100, total: 250 };

function requestOf(held: HeldBytes, hostId: string) {
  const refusals: PlatformError[] = [];
  return { refusals, ...held.hold(hostId, (error) => refusals.push(error)) };
}

it("refuses the largest request of a process that exceeds its share, so that small ones get through", () => {
  const held = new HeldBytes("parameters", LIMITS);
  const [other, first, second] = [requestOf(held, "b"), requestOf(held, "a"), requestOf(held, "a")];
  other.add(90);
  first.add(80);
  second.add(30);
  expect([...other.refusals, ...second.refusals]).toEqual([]);
  expect(first.refusals).toMatchObject([
    { code: "quota.exceeded", message: expect.stringContaining("110 bytes of parameters, more than 100") },
  ]);
  expect(held.bytes).toBe(90 + 30);
});

it("refuses the largest request of the process that holds the most when all together hold too much", () => {
  const held = new HeldBytes("parameters", LIMITS);
  const large = ["a", "b"].map((host) => requestOf(held, host));
  for (const one of large) one.add(99);
  const [small, largest] = [requestOf(held, "c"), requestOf(held, "a")];
  largest.add(1);
  small.add(52);
  expect(small.refusals).toEqual([]);
  expect(large.map(({ refusals }) => refusals.length)).toEqual([1, 0]);
  expect(held.bytes).toBe(99 + 1 + 52);
});

it("never holds more than its limits, and nothing when all requests have ended", () => {
  const step = fc.record({ request: fc.nat(9), bytes: fc.nat(120), ends: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const held = new HeldBytes("parameters", LIMITS);
      const requests = Array.from({ length: 10 }, (_, at) => requestOf(held, `host-${at % 4}`));
      for (const { request, bytes, ends } of steps) {
        if (ends) requests[request]?.release();
        else requests[request]?.add(bytes);
        expect(held.bytes).toBeLessThanOrEqual(LIMITS.total);
      }
      for (const { refusals, release } of requests) {
        expect(refusals.length).toBeLessThanOrEqual(1);
        release();
      }
      expect(held.bytes).toBe(0);
    }),
  );
});
