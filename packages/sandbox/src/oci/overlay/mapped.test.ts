import fc from "fast-check";
import { expect, it } from "vitest";
import { newUserMapping } from "./mapped.ts";

it("users of a sandbox are above all that machines use, and below the largest number", () => {
  fc.assert(
    fc.property(fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }), (random) => {
      const { hostId, size } = newUserMapping(() => random);
      expect(hostId % size).toBe(0);
      expect(hostId).toBeGreaterThanOrEqual(0x7000_0000);
      expect(hostId + size).toBeLessThan(2 ** 32 - 1);
    }),
  );
});
