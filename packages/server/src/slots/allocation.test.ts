import { share } from "@aenv/sandbox";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { budgetOf, type PoolLimits, stepsOf, type WarmDemand } from "./allocation.ts";

const limits = { each: 8, perOwner: 16, total: 32 };

function demand(name: string, more: Partial<WarmDemand> = {}): WarmDemand {
  return { name, owner: "ada", demanded: 0, reserve: 0, burst: 0, ...more };
}

/** How many processes each set may hold. */
function allocate(demands: readonly WarmDemand[], within: PoolLimits): ReadonlyMap<string, number> {
  const owners = new Map(demands.map(({ name, owner }) => [name, owner]));
  const given = share(
    stepsOf(demands, within.each),
    budgetOf(within, (name) => owners.get(name) ?? null),
  );
  return new Map(demands.map(({ name }) => [name, given.get(name) ?? 0]));
}

const wished = ({ demanded, reserve, burst }: WarmDemand, each: number) => Math.max(burst, Math.min(each, demanded + reserve));

const demands = fc.uniqueArray(
  fc.record({
    name: fc.string({ minLength: 1, maxLength: 3 }),
    owner: fc.constantFrom(null, "ada", "bob", "eve"),
    demanded: fc.nat(20),
    reserve: fc.nat(20),
    burst: fc.nat(20),
  }),
  { selector: ({ name }) => name, maxLength: 30 },
);
const someLimits = fc.record({ each: fc.nat(10), perOwner: fc.nat(20), total: fc.nat(40) });

describe("the number of warm processes", () => {
  it("never exceeds a limit, nor what a set asks for", () => {
    fc.assert(
      fc.property(demands, someLimits, (all, { each, perOwner, total }) => {
        const given = allocate(all, { each, perOwner, total });
        const sum = (some: readonly WarmDemand[]) => some.reduce((count, { name }) => count + (given.get(name) ?? 0), 0);
        expect(sum(all)).toBeLessThanOrEqual(total);
        for (const owner of ["ada", "bob", "eve"]) expect(sum(all.filter((one) => one.owner === owner))).toBeLessThanOrEqual(perOwner);
        for (const one of all) expect(given.get(one.name)).toBeLessThanOrEqual(wished(one, each));
      }),
    );
  });

  it("is all that the sets ask for if the limits allow it", () => {
    fc.assert(
      fc.property(demands, (all) => {
        const given = allocate(all, { each: 40, perOwner: 10_000, total: 10_000 });
        for (const one of all) expect(given.get(one.name)).toBe(wished(one, 40));
      }),
    );
  });

  it("uses all of the limits that a set can still use", () => {
    fc.assert(
      fc.property(demands, someLimits, (all, { each, perOwner, total }) => {
        const given = allocate(all, { each, perOwner, total });
        const of = (name: string) => given.get(name) ?? 0;
        const ofOwner = (owner: string) => all.filter((one) => one.owner === owner).reduce((sum, { name }) => sum + of(name), 0);
        const isFull = all.reduce((sum, { name }) => sum + of(name), 0) === total;
        for (const one of all) {
          const { name, owner } = one;
          const isServed = of(name) === wished(one, each);
          expect(isServed || isFull || (owner !== null && ofOwner(owner) === perOwner)).toBe(true);
        }
      }),
    );
  });

  it("is used for demand before reserves", () => {
    const given = allocate([demand("reserve", { reserve: 8 }), demand("demand", { owner: "bob", demanded: 5 })], { ...limits, total: 6 });
    expect(Object.fromEntries(given)).toEqual({ reserve: 1, demand: 5 });
  });

  it("is as large as the last burst, beyond the limit of one set, but not beyond its owner's limit", () => {
    expect(allocate([demand("forked", { demanded: 3, reserve: 2, burst: 12 })], limits).get("forked")).toBe(12);
    expect(allocate([demand("forked", { burst: 100 })], limits).get("forked")).toBe(16);
    expect(allocate([demand("forked", { demanded: 20, burst: 5 })], limits).get("forked")).toBe(8);
  });

  it("keeps the platform's blank processes, whatever environments reserve", () => {
    const many = Array.from({ length: 10 }, (_, n) => demand(`env-${n}`, { owner: `owner-${n}`, demanded: 8 }));
    const given = allocate([...many, demand("blank", { owner: null, reserve: 2 })], { ...limits, total: 4 });
    expect(given.get("blank")).toBe(2);
  });

  it("is shared evenly among sets that ask for more than the limits", () => {
    const given = allocate([demand("a", { owner: "ada", demanded: 8 }), demand("b", { owner: "bob", demanded: 8 })], {
      ...limits,
      total: 7,
    });
    expect(Object.fromEntries(given)).toEqual({ a: 4, b: 3 });
  });
});
