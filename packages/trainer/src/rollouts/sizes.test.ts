import fc from "fast-check";
import { expect, it } from "vitest";
import { MAX_REQUEST_BYTES, sizeClasses, sizeClassOf } from "./sizes.ts";

it("counts a request as one of a few sizes, less than a quarter above its own", () => {
  expect(sizeClasses.length).toBeLessThan(64);
  fc.assert(
    fc.property(fc.integer({ min: 0, max: MAX_REQUEST_BYTES }), (bytes) => {
      const size = sizeClassOf(bytes);
      expect(sizeClasses).toContain(size);
      expect(size).toBeGreaterThanOrEqual(bytes);
      expect(size).toBeLessThanOrEqual(Math.max(1_024, bytes * 1.25));
    }),
  );
});
