import { expect, it } from "vitest";
import { isSandboxId } from "./sandbox-id.ts";

it("accepts only ids that stay in their folder", () => {
  expect(["a", "shop-2k7", "A.b_c"].every(isSandboxId)).toBe(true);
  expect(["", ".", "..", ".part-1", "a/b", "a b", "-a"].some(isSandboxId)).toBe(false);
});
