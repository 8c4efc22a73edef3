import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatIpv4, parseIpv4 } from "./ipv4.ts";
import { isPublicAddress } from "./private-address.ts";

const hex = (address: string) => {
  const number = parseIpv4(address) as number;
  return `${(number >>> 16).toString(16)}:${(number & 0xffff).toString(16)}`;
};
const ipv4 = fc.nat({ max: 2 ** 32 - 1 }).map(formatIpv4);
const groups = (count: number) =>
  fc.array(fc.nat({ max: 0xffff }), { minLength: count, maxLength: count }).map((all) => all.map((one) => one.toString(16)).join(":"));
/** Addresses that begin with the bits of a network. */
const within = (address: string, prefix: number) =>
  fc.nat({ max: 2 ** (32 - prefix) - 1 }).map((rest) => formatIpv4((parseIpv4(address) as number) + rest));

describe("isPublicAddress", () => {
  it.each(["8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "192.167.1.1", "223.255.255.255"])(
    "is true for %s",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it.each(["2606:4700::1111", "2001:4860:4860::8888", "2A00:1450::1", "3ffe::1", "::ffff:8.8.8.8", "64:ff9b::808:808"])(
    "is true for %s",
    (address) => expect(isPublicAddress(address)).toBe(true),
  );

  it.each([
    ["this network", "0.0.0.0", 8],
    ["a private network", "10.0.0.0", 8],
    ["carrier-grade NAT and its metadata service", "100.64.0.0", 10],
    ["loopback", "127.0.0.0", 8],
    ["link-local with the metadata services", "169.254.0.0", 16],
    ["a private network", "172.16.0.0", 12],
    ["protocol assignments", "192.0.0.0", 24],
    ["documentation", "192.0.2.0", 24],
    ["relays of 6to4", "192.88.99.0", 24],
    ["a private network", "192.168.0.0", 16],
    ["benchmarks", "198.18.0.0", 15],
    ["documentation", "198.51.100.0", 24],
    ["documentation", "203.0.113.0", 24],
    ["multicast", "224.0.0.0", 4],
    ["reserved and broadcast", "240.0.0.0", 4],
  ])("is false for every address of %s, %s/%i", (_, address, prefix) => {
    fc.assert(fc.property(within(address, prefix), (one) => !isPublicAddress(one) && !isPublicAddress(`::ffff:${one}`)));
  });

  it.each([
    ["unspecified and loopback", ["::", "::1", "0:0:0:0:0:0:0:1"]],
    ["a metadata service with a public address", ["168.63.129.16", "::ffff:168.63.129.16"]],
    ["link-local, also with a zone", ["fe80::1", "febf::1", "fe80::1%eth0", "2606:4700::1111%eth0"]],
    ["site-local", ["fec0::1"]],
    ["unique local with a metadata service", ["fc00::1", "fd00:ec2::254"]],
    ["multicast", ["ff02::1"]],
    ["discard", ["100::1"]],
    ["documentation", ["2001:db8::1", "3fff::1"]],
    ["benchmarks and ORCHID", ["2001:2::1", "2001:10::1", "2001:20::1"]],
    ["local NAT64", ["64:ff9b:1::808:808"]],
    ["segment routing", ["5f00::1"]],
  ])("is false for %s", (_, addresses) => {
    for (const address of addresses) expect(isPublicAddress(address), address).toBe(false);
  });

  it("decides on an IPv4 address that is mapped or translated by NAT64 as on the address itself, in either notation", () => {
    fc.assert(
      fc.property(ipv4, (address) => {
        for (const other of [`::ffff:${address}`, `::ffff:${hex(address)}`, `64:ff9b::${address}`, `64:ff9b::${hex(address)}`])
          expect(isPublicAddress(other), other).toBe(isPublicAddress(address));
      }),
    );
  });

  it("is false for every other way to put an IPv4 address into an IPv6 address, whatever the address", () => {
    fc.assert(
      fc.property(ipv4, groups(5), groups(6), (address, five, six) => {
        const embedded = [
          `::${address}`,
          `::${hex(address)}`,
          `::ffff:0:${address}`,
          `::ffff:0:${hex(address)}`,
          `2002:${hex(address)}::1`,
          `2002:${hex(address)}:${five}`,
          `2001:0:${six}`,
          `64:ff9b:1::${hex(address)}`,
        ];
        for (const one of embedded) expect(isPublicAddress(one), one).toBe(false);
      }),
    );
  });

  it("is false for every IPv6 address of unique local, link-local, site-local and multicast networks", () => {
    const first = fc.oneof(
      fc.integer({ min: 0xfc00, max: 0xfdff }),
      fc.integer({ min: 0xfe80, max: 0xfeff }),
      fc.integer({ min: 0xff00, max: 0xffff }),
    );
    fc.assert(fc.property(first, groups(7), (head, rest) => !isPublicAddress(`${head.toString(16)}:${rest}`)));
  });

  it("is false for a text that is no address, as some programs read an address from it", () => {
    for (const text of [
      "",
      "localhost",
      "010.0.0.1",
      "8.8.8",
      "0x08080808",
      "134744072",
      "8.8.8.8:80",
      "[2606:4700::1]",
      "2606:4700::1]@x",
      "1::2::3",
      "8.8.8.8 ",
    ])
      expect(isPublicAddress(text), text).toBe(false);
    fc.assert(fc.property(fc.string(), (text) => !isPublicAddress(text) || /^[\da-f.:]+$/i.test(text)));
  });
});
