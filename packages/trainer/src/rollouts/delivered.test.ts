import { isPlatformError } from "@aenv/contract";
import fc from "fast-check";
import { expect, it } from "vitest";
import { Delivered } from "./delivered.ts";

it("is read from its own text, for any positions of any request", () => {
  const requests = fc.integer({ min: 1, max: 300 }).chain((size) => fc.tuple(fc.constant(size), fc.uniqueArray(fc.nat(size - 1))));
  fc.assert(
    fc.property(requests, ([size, positions]) => {
      const delivered = new Delivered(size);
      for (const at of positions) delivered.add(at);
      expect([...Delivered.parse(delivered.toString(), size).positions()]).toEqual([...positions].sort((a, b) => a - b));
    }),
  );
});

it("refuses any other text, and begins at the start without one", () => {
  expect(Delivered.parse(undefined, 8).positions().size).toBe(0);
  expect(Delivered.parse("", 8).positions().size).toBe(0);
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), fc.integer({ min: 1, max: 100 }), (text, size) => {
      try {
        expect(Delivered.parse(text, size).toString()).toHaveLength(new Delivered(size).toString().length);
      } catch (error) {
        expect(isPlatformError(error, "request.invalid")).toBe(true);
      }
    }),
  );
});
