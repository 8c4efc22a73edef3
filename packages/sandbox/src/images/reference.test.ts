import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatReference, parseReference, skopeoSource } from "./reference.ts";

const digest = `sha256:${"0123456789abcdef".repeat(4)}`;

describe("a reference of an image", () => {
  it.each([
    ["python", "docker.io/library/python:latest"],
    ["python:3.12", "docker.io/library/python:3.12"],
    ["team/name", "docker.io/team/name:latest"],
    ["localhost/name", "localhost/name:latest"],
    ["localhost:5000/name", "localhost:5000/name:latest"],
    ["oci:5000/name:1", "oci:5000/name:1"],
    [`registry:5000/ns/name:tag@${digest}`, `registry:5000/ns/name:tag@${digest}`],
    [`name@${digest}`, `docker.io/library/name@${digest}`],
    ["[::1]:5000/name", "[::1]:5000/name:latest"],
    ["docker://ghcr.io/a/b", "ghcr.io/a/b:latest"],
    ["docker-daemon:name:tag", "docker-daemon:name:tag"],
    ["oci:/images/one", "oci:/images/one"],
    ["oci:./one:v1", "oci:./one:v1"],
    ["docker-archive:/a.tar:name:tag", "docker-archive:/a.tar:name:tag"],
  ])("%s means %s", (text, meaning) => {
    expect(formatReference(parseReference(text))).toBe(meaning);
  });

  it.each([
    ["", "is not a repository"],
    ["Name", "is not a repository"],
    ["a//b", "is not a repository"],
    ["../a", "is not a host name"],
    ["-a", "is not a repository"],
    ["name:", "is not a tag"],
    ["name:a b", "is not a tag"],
    ["name@sha256:12", "is not a digest"],
    [`name@${digest}@${digest}`, "more than one '@'"],
    ["docker-daemon:", "is not a name"],
    ["docker-daemon:--help", "is not a name"],
    ["docker-archive:a.tar", "must begin with"],
    ["oci:/a\0b", "zero byte"],
  ])("%j is refused", (text, problem) => {
    expect(() => parseReference(text)).toThrow(problem);
  });

  it("is read back from its text, whatever it was written as", () => {
    const part = fc.stringMatching(/^[a-z0-9]{1,8}([._-][a-z0-9]{1,4})?$/);
    const tag = fc.option(fc.stringMatching(/^[A-Za-z0-9_][A-Za-z0-9_.-]{0,12}$/));
    const host = fc.constantFrom("", "localhost/", "registry:5000/", "ghcr.io/", "[::1]:80/");
    const text = fc
      .tuple(host, fc.array(part, { minLength: 1, maxLength: 3 }), tag, fc.boolean())
      .map(
        ([registry, path, label, pinned]) =>
          `${registry}${path.join("/")}${label === null ? "" : `:${label}`}${pinned ? `@${digest}` : ""}`,
      );
    fc.assert(
      fc.property(text, (written) => {
        const reference = parseReference(written);
        expect(parseReference(formatReference(reference))).toEqual(reference);
      }),
    );
  });

  it("is either parsed or refused with an error that names it, and is never an option of skopeo", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^(oci:|docker-daemon:|docker:\/\/)?[-a-z:/.@]{0,20}$/)), (text) => {
        let source = "";
        try {
          source = skopeoSource(parseReference(text));
        } catch (error) {
          expect((error as Error).message).toContain(text);
          return;
        }
        expect(source).toMatch(/^(docker:\/\/|docker-daemon:|oci:|docker-archive:)/);
      }),
    );
  });

  it("with a tag and a digest is copied by its digest", () => {
    expect(skopeoSource(parseReference(`a.b/c:1@${digest}`))).toBe(`docker://a.b/c@${digest}`);
  });
});
