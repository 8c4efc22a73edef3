import { containsIpv4, overlapsIpv4, parseIpv4, parseIpv4Network } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { collisionWith } from "./home.ts";
import { parseRoutes } from "./routes.ts";
import { candidates, capacityOf, endsOf, freeSubnets, indexOf, nameOf, prefixOf } from "./subnet.ts";

const subnet = fc
  .tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.integer({ min: 8, max: 29 }))
  .map(([address, prefix]) => ({ address: Math.floor(address / 2 ** (32 - prefix)) * 2 ** (32 - prefix), prefix }));

describe("the addresses of sandboxes", () => {
  it("are in the subnet, and no two ends share one", () => {
    fc.assert(
      fc.property(subnet, fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }), (network, places) => {
        const capacity = capacityOf(network);
        const indexes = new Set(places.map((place) => 1 + Math.floor(place * (capacity - 1))));
        const addresses = [...indexes].flatMap((index) => Object.values(endsOf(network, index)));
        expect(new Set(addresses).size).toBe(addresses.length);
        for (const address of addresses) expect(containsIpv4(network, { address: parseIpv4(address) ?? -1, prefix: 32 })).toBe(true);
      }),
    );
  });

  it("do not exist outside of the capacity", () => {
    const network = parseIpv4Network("10.70.0.0/29");
    if (network === null) throw new Error("not parsed");
    expect(capacityOf(network)).toBe(1);
    for (const index of [-1, 0, 2, 1.5]) expect(() => endsOf(network, index)).toThrow("no block");
  });

  it("are each tried once, beginning after the last one", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.nat({ max: 300 }), (capacity, last) => {
        const order = [...candidates(capacity, last)];
        expect([...order].sort((a, b) => a - b)).toEqual(Array.from({ length: capacity }, (_, index) => index + 1));
        if (capacity > 1 && last >= 1 && last <= capacity) expect(order.at(-1)).toBe(last);
      }),
    );
  });

  it("are in a subnet that no route of the machine overlaps", () => {
    fc.assert(
      fc.property(fc.string(), fc.array(subnet, { maxLength: 30 }), (home, routes) => {
        for (const free of freeSubnets(home, routes)) expect(routes.some((route) => overlapsIpv4(route, free))).toBe(false);
      }),
    );
    expect(freeSubnets("/home", [])).toHaveLength(64);
    expect(freeSubnets("/home", [{ address: 0x0a000000, prefix: 8 }])).toEqual([]);
  });
});

describe("the names of networks", () => {
  it("fit an interface and lead back to their number, of their home only", () => {
    fc.assert(
      // The largest subnet is a /10.
      fc.property(fc.string(), fc.string(), fc.integer({ min: 1, max: 2 ** 20 - 1 }), (home, other, index) => {
        const name = nameOf(prefixOf(home), index);
        expect(name.length).toBeLessThanOrEqual(15);
        expect(indexOf(prefixOf(home), name)).toBe(index);
        if (home !== other) expect(indexOf(prefixOf(other), name)).toBeNull();
      }),
    );
    for (const name of ["eth0", "", "docker0"]) expect(indexOf(prefixOf("/home"), name)).toBeNull();
  });
});

describe("routes of the machine", () => {
  it("collide with a subnet unless they are of its home", () => {
    const routes = parseRoutes(
      JSON.stringify([
        { dst: "default", gateway: "192.0.2.1", dev: "eth0" },
        { dst: "10.70.0.4/30", dev: "aeaa_1" },
        { type: "blackhole", dst: "10.70.0.0/16", metric: 7 },
        { dst: "10.71.3.0/24", dev: "vpn0" },
        { type: "blackhole", dst: "10.72.0.0/16", metric: 8 },
      ]),
    );
    const collides = (text: string) => collisionWith(parseIpv4Network(text) ?? { address: 0, prefix: 0 }, routes, "aeaa_", 7) !== null;
    expect(["10.70.0.0/16", "10.71.0.0/16", "10.72.0.0/16", "10.73.0.0/16"].map(collides)).toEqual([false, true, true, false]);
  });
});
