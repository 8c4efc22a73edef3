import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { dialTarget, type Listener, readListeners } from "./listeners.ts";

const order = fc.constantFrom("LE" as const, "BE" as const);
const hex = (digits: number) => fc.array(fc.integer({ min: 0, max: 15 }), { minLength: digits, maxLength: digits }).map(toHex);
const socket = fc.record({
  address: fc.oneof(hex(8), hex(32), fc.constantFrom("7f000001", "00000000", "0".repeat(32))),
  port: fc.integer({ min: 1, max: 65_535 }),
  inode: fc.integer({ min: 1, max: 2 ** 31 }).map(String),
  state: fc.constantFrom("0A", "01", "06", "08"),
});
type PrintedSocket = typeof socket extends fc.Arbitrary<infer T> ? T : never;

describe("the system's table of sockets", () => {
  it("gives exactly the listeners on a port, whatever the machine's byte order", () => {
    fc.assert(
      fc.property(fc.array(socket), fc.integer({ min: 1, max: 65_535 }), order, (sockets, other, byteOrder) => {
        const table = print(sockets, byteOrder);
        for (const port of [other, ...sockets.map((one) => one.port)]) {
          const expected = sockets.filter((one) => one.port === port && one.state === "0A");
          expect(readListeners(table, port, byteOrder)).toEqual(expected.map(({ inode, address }) => ({ inode, address })));
        }
      }),
    );
  });

  it("is read without an error, whatever it contains", () => {
    fc.assert(fc.property(fc.string(), (text) => void expect(readListeners(text, 80)).toEqual([])));
  });

  it("is read as Linux prints it", () => {
    const table = `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 31337 1 0000000000000000 100 0 0 10 0
   1: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 31338 1 0000000000000000 20 4 30 10 -1
`;
    expect(readListeners(table, 8080, "LE")).toEqual([{ inode: "31337", address: "7f000001" }]);
  });
});

describe("the address to connect to", () => {
  const at = (address: string, inode: string): Listener => ({ address, inode });
  const any6 = at("0".repeat(32), "6");
  const loopback6 = at("1".padStart(32, "0"), "61");

  it("is the IPv4 loopback if a socket listens there, with every listener that might accept the connection", () => {
    expect(dialTarget([at("7f000001", "4")])).toEqual({ host: "127.0.0.1", inodes: ["4"] });
    expect(dialTarget([at("00000000", "4"), any6, loopback6])).toEqual({ host: "127.0.0.1", inodes: ["4", "6"] });
  });

  it("is the IPv6 loopback if sockets listen only there, and null if none listens", () => {
    expect(dialTarget([any6])).toEqual({ host: "::1", inodes: ["6"] });
    expect(dialTarget([loopback6, any6])).toEqual({ host: "::1", inodes: ["6", "61"] });
    expect(dialTarget([at("0a000001", "10")])).toBeNull();
    expect(dialTarget([])).toBeNull();
  });
});

function print(sockets: readonly PrintedSocket[], byteOrder: "LE" | "BE"): string {
  const lines = sockets.map(({ address, port, inode, state }, at) => {
    const local = address.replace(/.{8}/g, (word) => (byteOrder === "BE" ? word : (word.match(/../g) ?? []).reverse().join("")));
    return `${at}: ${local.toUpperCase()}:${toHexPort(port)} 00000000:0000 ${state} 0:0 0:0 0 0 0 ${inode} 1 0 100`;
  });
  return ["  sl  local_address rem_address   st", ...lines, ""].join("\n");
}

function toHex(digits: readonly number[]): string {
  return digits.map((digit) => digit.toString(16)).join("");
}

function toHexPort(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, "0");
}
