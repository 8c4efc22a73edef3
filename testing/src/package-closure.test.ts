import { describe, expect, it } from "vitest";
import { packageClosure } from "./package-closure.ts";

describe("the packages that a package needs", () => {
  it("are found as Node resolves them: the nearest one first", () => {
    const packages = {
      "node_modules/a": { dependencies: { b: "^1", c: "^1" } },
      "node_modules/a/node_modules/b": { dependencies: { c: "^1" } },
      "node_modules/b": {},
      "node_modules/c": { dependencies: { a: "^1" } },
      "node_modules/unused": {},
    };
    expect(packageClosure(["a"], packages)).toEqual(["node_modules/a", "node_modules/a/node_modules/b", "node_modules/c"]);
  });

  it("include optional ones only if they are installed", () => {
    const packages = { "node_modules/a": { optionalDependencies: { b: "^1", c: "^1" } }, "node_modules/b": {} };
    expect(packageClosure(["a"], packages)).toEqual(["node_modules/a", "node_modules/b"]);
  });

  it("are all there, or the missing one is named", () => {
    expect(() => packageClosure(["a"], { "node_modules/a": { dependencies: { b: "^1" } } })).toThrow("b, which node_modules/a needs");
  });
});
