import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatBytes, parseBytes } from "./bytes.ts";

describe("parseBytes", () => {
  it.each([
    ["0", 0],
    ["1000", 1000],
    ["10 GiB", 10 * 1024 ** 3],
    ["10GiB", 10 * 1024 ** 3],
    ["1.5 MiB", 1.5 * 1024 ** 2],
    ["2 GB", 2e9],
    ["64kib", 65_536],
    ["7 B", 7],
  ])("reads %j as %d", (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  it.each(["", "GiB", "-1", "1 XiB", "ten", "1e3", "1 GiB 2", "9999999 PiB"])("refuses %j and describes the format", (text) => {
    expect(() => parseBytes(text)).toThrow("such as 10 GiB");
  });

  it("reads back what formatBytes writes", () => {
    fc.assert(fc.property(fc.maxSafeNat(), (bytes) => void expect(parseBytes(formatBytes(bytes))).toBe(bytes)));
  });
});
