import fc from "fast-check";
import { expect, it } from "vitest";
import { evictions } from "./evictions.ts";

const result = fc.record({
  owner: fc.constantFrom("ada", "bob", "cleo"),
  at: fc.integer({ min: 0, max: 999 }).map((ms) => new Date(ms).toISOString()),
  bytes: fc.integer({ min: 1, max: 100 }),
});
const results = fc.array(result, { maxLength: 40 }).map((all) => all.map((one, at) => ({ ...one, key: String(at) })));
const limit = fc.integer({ min: 1, max: 2_000 });

it("keeps to both limits, takes from no owner with less than its share, and takes the oldest first", () => {
  fc.assert(
    fc.property(results, limit, limit, (all, maxBytes, maxBytesPerOwner) => {
      const evicted = new Set(evictions(all, { maxBytes, maxBytesPerOwner }));
      const kept = all.filter((one) => !evicted.has(one));
      const bytes = (some: typeof all) => some.reduce((sum, one) => sum + one.bytes, 0);
      expect(bytes(kept)).toBeLessThanOrEqual(maxBytes);
      const owners = Map.groupBy(all, ({ owner }) => owner);
      for (const [owner, own] of owners) {
        const left = kept.filter((one) => one.owner === owner);
        expect(bytes(left)).toBeLessThanOrEqual(maxBytesPerOwner);
        if (bytes(own) <= Math.min(maxBytesPerOwner, maxBytes / owners.size)) expect(left).toHaveLength(own.length);
        const oldestLeft = left.map(({ at }) => at).sort()[0] ?? "9999";
        for (const one of own) if (evicted.has(one)) expect(one.at <= oldestLeft).toBe(true);
      }
    }),
  );
});
