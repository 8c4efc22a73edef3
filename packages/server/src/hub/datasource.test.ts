import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { imageOf, isImageReference } from "./datasource.ts";

describe("the image of a datasource", () => {
  it.each([
    ["what works in the original: a prefix without a separator", "inst1", "registry.example.com/envs", "registry.example.com/envs:inst1"],
    ["what works in the original: no prefix, a bare key", "inst1", undefined, "docker.io/library/aenv:inst1"],
    ["what is documented: a prefix that ends in a colon", "inst1", "reg.io/swebench/common_name:", "reg.io/swebench/common_name:inst1"],
    ["what is documented: a whole image", "swebench/sweb.eval.x86_64.x:latest", undefined, "swebench/sweb.eval.x86_64.x:latest"],
    ["an empty prefix as none", "foo:1", "", "foo:1"],
    ["a prefix that ends in a slash", "inst1", "reg.io/envs/", "reg.io/envs/inst1"],
    ["a prefix that ends in a dash", "inst1", "reg.io/envs/base-", "reg.io/envs/base-inst1"],
    ["a whole image, whatever the prefix", "swebench/sweb.eval.case:latest", "reg.io/aenv/base", "swebench/sweb.eval.case:latest"],
    ["a whole image, also after a prefix that ends in a slash", "python:3.11", "reg.io/envs/", "python:3.11"],
    ["a digest that begins with its separator", `@sha256:${"a".repeat(64)}`, "reg.io/envs", `reg.io/envs@sha256:${"a".repeat(64)}`],
    ["a datasource that begins with its separator", ":v2", "reg.io/envs", "reg.io/envs:v2"],
  ])("keeps %s", (_, datasource, prefix, image) => {
    expect(imageOf(datasource, prefix)).toBe(image);
  });

  it("is refused if it is not an image name, naming the datasource", () => {
    expect(() => imageOf("a b", "reg.io/envs")).toThrow("the datasource 'a b' with the imagePrefix 'reg.io/envs' gives 'reg.io/envs:a b'");
    for (const bad of ["../../etc/passwd", "a/../b", "UPPER/x", "x:", "a::b", "http://reg.io/a", "", "x --privileged/y"]) {
      expect(() => imageOf(bad, undefined), bad).toThrow("not an image name");
    }
  });

  it("never contains a space, an option or a parent path, for any input", () => {
    fc.assert(
      fc.property(fc.string(), fc.option(fc.string(), { nil: undefined }), (datasource, prefix) => {
        let image: string;
        try {
          image = imageOf(datasource, prefix);
        } catch {
          return;
        }
        expect(image).toMatch(/^[\w.:/@+-]+$/);
        expect(image.startsWith("-")).toBe(false);
        expect(image.split("/")).not.toContain("..");
      }),
    );
  });
});

describe("an image reference", () => {
  it("may have a host, a port, a tag and a digest", () => {
    const digest = `sha256:${"a".repeat(64)}`;
    for (const good of [
      "a",
      "a/b",
      "localhost/a",
      "localhost:5000/a:1",
      "reg.io/a/b_c__d-e.f:V1.0-x",
      `reg.io/a@${digest}`,
      `a:1@${digest}`,
    ]) {
      expect(isImageReference(good), good).toBe(true);
    }
    for (const bad of ["", "/a", "a/", "A", "a:", "a:-x", "a@sha256:12", "a@b@c", "-a", "a//b", `a:${"x".repeat(129)}`]) {
      expect(isImageReference(bad), bad).toBe(false);
    }
  });
});
