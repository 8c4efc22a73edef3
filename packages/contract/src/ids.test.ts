import { describe, expect, it } from "vitest";
import { newInstanceId, newKey, parseRequestId } from "./ids.ts";

describe("newInstanceId", () => {
  it("returns a DNS label, whatever the length of the environment's name", () => {
    for (const name of ["a", "tau2-bench", "x".repeat(100), `${"x".repeat(41)}-y`]) {
      expect(newInstanceId(name)).toMatch(/^(?=.{1,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])$/);
    }
    expect(newInstanceId(`${"x".repeat(41)}-y`)).not.toContain("--");
  });

  it("returns a different key each time", () => {
    expect(newKey()).toMatch(/^[a-z2-7]{20}$/);
    expect(new Set(Array.from({ length: 1_000 }, newKey)).size).toBe(1_000);
  });
});

describe("parseRequestId", () => {
  it("accepts only short plain ids", () => {
    expect(parseRequestId("a-1_b.C")).toBe("a-1_b.C");
    for (const bad of [undefined, "", "a b", "a\nb", "x".repeat(65), ["a"]]) expect(parseRequestId(bad)).toBeNull();
  });
});
