import { describe, expect, it } from "vitest";
import { exactRefOf, refOf } from "./ref.ts";

describe("an environment on the command line", () => {
  it.each([
    ["my-env", undefined, "my-env"],
    ["my-env@", undefined, "my-env"],
    ["my-env@1.0.0", undefined, "my-env@1.0.0"],
    ["my-env", "1.0.0", "my-env@1.0.0"],
    ["my-env@1.0.0", "1.0.0", "my-env@1.0.0"],
  ])("is '%s' with --version %s", (text, version, ref) => {
    expect(refOf(text, version)).toBe(ref);
  });

  it("has one name and one version", () => {
    expect(() => refOf("@1.0.0")).toThrow("names no environment");
    expect(() => refOf("my-env@1.0.0", "2.0.0")).toThrow("two versions");
    expect(() => exactRefOf("my-env")).toThrow("which version of my-env?");
    expect(exactRefOf("my-env", "1.0.0")).toBe("my-env@1.0.0");
  });
});
