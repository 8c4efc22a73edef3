import { describe, expect, it } from "vitest";
import { digestOf, hexOf, parseDigest } from "./digest.ts";

describe("a digest", () => {
  it("is sha256 in lower-case hex and nothing else", () => {
    expect(hexOf(digestOf("x"))).toMatch(/^[0-9a-f]{64}$/);
    for (const text of ["", "sha256:", `sha256:${"A".repeat(64)}`, `md5:${"a".repeat(64)}`, `sha256:../${"a".repeat(61)}`]) {
      expect(() => parseDigest(text)).toThrow("is not a digest");
    }
    expect(() => parseDigest(`sha256:${"a".repeat(64)}\n`)).toThrow("is not a digest");
  });
});
