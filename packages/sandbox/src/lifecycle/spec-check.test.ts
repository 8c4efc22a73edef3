import { describe, expect, it } from "vitest";
import type { SandboxSpec } from "../engine/engine.ts";
import { assertValid, isSandboxId } from "./spec-check.ts";

it("accepts only ids that stay in their folder", () => {
  expect(["a", "shop-2k7", "A.b_c"].every(isSandboxId)).toBe(true);
  expect(["", ".", "..", ".part-1", "a/b", "a b", "-a"].some(isSandboxId)).toBe(false);
});

describe("the check of a specification", () => {
  const spec: SandboxSpec = { id: "one", command: ["node"], variables: {}, labels: {}, startTimeoutMs: 1_000 };
  const codeOf = (change: Partial<SandboxSpec>) => {
    try {
      assertValid({ ...spec, ...change }, { snapshot: "starts from a snapshot, which this engine does not have" });
      return null;
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it("accepts a command, an image, and a sandbox that only runs commands", () => {
    expect(codeOf({})).toBeNull();
    expect(codeOf({ command: [], image: "alpine" })).toBeNull();
    expect(codeOf({ command: [], listening: { kind: "none" } })).toBeNull();
  });

  it("refuses another id, nothing to run, and what the engine does not have", () => {
    expect(codeOf({ id: "../one" })).toBe("request.invalid");
    expect(codeOf({ command: [] })).toBe("request.invalid");
    expect(codeOf({ snapshot: "two" })).toBe("sandbox.unsupported");
  });
});
