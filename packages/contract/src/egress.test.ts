import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { beyondEgress, type EgressPolicy, egressPolicy, matchesName, narrowEgress, parseDestination } from "./egress.ts";
import { containsIpv4, formatIpv4, formatIpv4Network, overlapsIpv4, parseIpv4, parseIpv4Network } from "./ipv4.ts";

const network = fc
  .tuple(fc.nat({ max: 2 ** 32 - 1 }), fc.nat({ max: 32 }))
  .map(([address, prefix]) => parseIpv4Network(`${formatIpv4(address)}/${prefix}`))
  .filter((one) => one !== null);

describe("an IPv4 address", () => {
  it("is the same after it was formatted and parsed", () => {
    fc.assert(fc.property(fc.nat({ max: 2 ** 32 - 1 }), (address) => parseIpv4(formatIpv4(address)) === address));
    fc.assert(
      fc.property(network, (one) => {
        expect(parseIpv4Network(formatIpv4Network(one))).toEqual(one);
      }),
    );
  });

  it.each(["", "1.2.3", "1.2.3.4.5", "256.1.1.1", "01.2.3.4", "1.2.3.4 ", "0x7f.0.0.1", "::1"])("is not '%s'", (text) => {
    expect(parseIpv4(text)).toBeNull();
  });

  it("is in a network exactly if the network contains it as a network of its own", () => {
    fc.assert(
      fc.property(network, network, (one, other) => {
        const last = one.address + 2 ** (32 - one.prefix) - 1;
        const isInside = other.address >= one.address && other.address <= last && other.prefix >= one.prefix;
        expect(containsIpv4(one, other)).toBe(isInside);
        expect(overlapsIpv4(one, other)).toBe(containsIpv4(one, other) || containsIpv4(other, one));
      }),
    );
  });
});

describe("a destination", () => {
  it.each([
    ["API.example.com:443", { kind: "name", name: "api.example.com", port: 443 }],
    ["*.example.com", { kind: "names", name: "example.com", port: null }],
    ["10.1.2.3/16:5432", { kind: "network", network: { address: 0x0a010000, prefix: 16 }, port: 5432 }],
    ["1.2.3.4", { kind: "network", network: { address: 0x01020304, prefix: 32 }, port: null }],
    ["0.0.0.0/0", { kind: "network", network: { address: 0, prefix: 0 }, port: null }],
  ])("can be %s", (text, expected) => {
    expect(parseDestination(text)).toEqual(expected);
  });

  it.each([
    "",
    "*",
    "*.",
    "a b",
    "host/16",
    "host:0",
    "host:70000",
    "host:",
    "1.2.3.4/33",
    "1.2.3",
    "300.1.1.1",
    "-a.b",
    "[::1]:80",
    "http://a",
  ])("cannot be '%s'", (text) => {
    expect(parseDestination(text)).toBeNull();
    expect(egressPolicy.safeParse({ allow: [text] }).success).toBe(false);
  });

  it("with a wildcard matches the names below it, not the domain and not names that only end alike", () => {
    const wildcard = parseDestination("*.example.com");
    if (wildcard === null) throw new Error("not parsed");
    const names = ["a.example.com", "a.b.example.com", "example.com", "badexample.com"];
    expect(names.map((name) => matchesName(wildcard, name))).toEqual([true, true, false, false]);
  });
});

describe("a limit", () => {
  const list = (...allow: string[]): EgressPolicy => ({ allow });

  it.each<[EgressPolicy, EgressPolicy, string | null]>([
    ["none", "none", null],
    ["open", "none", "open"],
    ["open", "open", null],
    ["open", list("a.com"), "open"],
    ["open", list("0.0.0.0/0"), null],
    [list("a.com"), "none", "a.com"],
    [list("a.com", "1.2.3.4:80"), "open", null],
    [list("10.1.0.0/16:5432"), "open", "10.1.0.0/16:5432"],
    [list("0.0.0.0/0"), "open", "0.0.0.0/0"],
    [list("10.1.0.0/16:5432"), list("10.0.0.0/8"), null],
    [list("10.0.0.0/8"), list("10.1.0.0/16"), "10.0.0.0/8"],
    [list("a.com:443"), list("a.com"), null],
    [list("a.com"), list("a.com:443"), "a.com"],
    [list("x.a.com", "*.x.a.com"), list("*.a.com"), null],
    [list("a.com"), list("*.a.com"), "a.com"],
    [list("*.a.com"), list("x.a.com"), "*.a.com"],
  ])("for %j, limited by %j, is exceeded by %j", (policy, limit, beyond) => {
    expect(beyondEgress(policy, limit)).toBe(beyond);
  });

  const entry = fc.constantFrom("a.com", "*.a.com", "x.a.com:443", "10.0.0.0/8", "10.1.0.0/16:80", "8.8.8.8", "0.0.0.0/0");
  const policy: fc.Arbitrary<EgressPolicy> = fc.oneof(
    fc.constantFrom<EgressPolicy>("none", "open"),
    fc.uniqueArray(entry, { minLength: 1, maxLength: 3 }).map((allow) => ({ allow })),
  );

  it("never allows more in a policy than a wider limit does", () => {
    fc.assert(
      fc.property(policy, policy, policy, (one, two, three) => {
        if (beyondEgress(one, two) === null && beyondEgress(two, three) === null) expect(beyondEgress(one, three)).toBeNull();
        expect(beyondEgress(one, one)).toBeNull();
      }),
    );
  });

  it.each<[EgressPolicy, EgressPolicy, EgressPolicy]>([
    ["open", "none", "none"],
    ["open", list("a.com"), list("a.com")],
    ["open", list("a.com", "10.0.0.0/8"), list("a.com")],
    [list("a.com", "b.com"), list("*.a.com", "b.com:443"), list("b.com:443")],
    [list("a.com:80"), list("a.com:443"), "none"],
  ])("narrows %j by %j to %j", (one, limit, expected) => {
    expect(narrowEgress(one, limit)).toEqual(expected);
  });

  it("narrows a policy to one that both allow, in any order", () => {
    fc.assert(
      fc.property(policy, policy, (one, other) => {
        const both = narrowEgress(one, other);
        expect([beyondEgress(both, one), beyondEgress(both, other)]).toEqual([null, null]);
        expect(beyondEgress(both, narrowEgress(other, one))).toBeNull();
        expect(egressPolicy.safeParse(both).success).toBe(true);
      }),
    );
  });
});
