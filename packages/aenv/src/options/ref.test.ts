import { describe, expect, it } from "vitest";
import { exactRefArgument, refArgument } from "./ref.ts";

describe("an environment on the command line", () => {
  it.each([
    ["my-env", undefined, "my-env"],
    ["my-env@", undefined, "my-env"],
    ["my-env@1.0.0", undefined, "my-env@1.0.0"],
    ["my-env", "1.0.0", "my-env@1.0.0"],
    ["my-env@1.0.0", "1.0.0", "my-env@1.0.0"],
  ])("is '%s' with --version %s", (text, version, ref) => {
    expect(refArgument(text, version)).toBe(ref);
  });

  it("needs a name, and at most one version", () => {
    expect(() => refArgument("@1.0.0")).toThrow("is not the name of an environment");
    expect(() => refArgument("my-env@1.0.0", "2.0.0")).toThrow("different versions");
    expect(() => exactRefArgument("my-env")).toThrow("the version of my-env is missing");
    expect(exactRefArgument("my-env", "1.0.0")).toBe("my-env@1.0.0");
  });
});
