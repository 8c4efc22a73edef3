import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isPlatformError } from "./errors.ts";
import { formatRef, nameProblem, parseName, parseRef, splitRef, versionProblem } from "./ref.ts";

const withoutAt = fc.string({ minLength: 1 }).filter((text) => !text.includes("@"));

describe("parseRef", () => {
  it("parses a name and a version, and formatRef returns the same text", () => {
    fc.assert(
      fc.property(withoutAt, withoutAt, (name, version) => {
        const ref = parseRef(`${name}@${version}`);
        expect(ref).toEqual({ name, version });
        expect(formatRef(ref)).toBe(`${name}@${version}`);
      }),
    );
  });

  it.each([
    ["tau2", "Invalid EnvName format: expected 'name@version', got: tau2"],
    ["a@b@c", "Invalid EnvName format: expected 'name@version', got: a@b@c"],
    ["", "Invalid EnvName format: expected 'name@version', got: "],
    ["@1.0.0", "Invalid EnvName format: env name cannot be empty"],
    ["@", "Invalid EnvName format: env name cannot be empty"],
    ["tau2@", "Invalid EnvName format: env version cannot be empty"],
  ])("refuses '%s' in the original's words", (text, message) => {
    expect(() => parseRef(text)).toThrow(message);
  });

  it("accepts exactly the texts with one @ and text on both sides", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "@", "1", ".") }), (text) => {
        const isRef = /^[^@]+@[^@]+$/.test(text);
        try {
          parseRef(text);
          expect(isRef).toBe(true);
        } catch (error) {
          expect(isPlatformError(error, "request.invalid")).toBe(true);
          expect(isRef).toBe(false);
        }
      }),
    );
  });
});

describe("splitRef", () => {
  it("splits at the first @, and returns an empty version without one", () => {
    expect(splitRef("tau2@1.0.2")).toEqual({ name: "tau2", version: "1.0.2" });
    expect(splitRef("tau2")).toEqual({ name: "tau2", version: "" });
    expect(splitRef("a@b@c")).toEqual({ name: "a", version: "b@c" });
  });

  it("loses nothing: formatRef returns every text that does not end in its first @", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "@", "1") }), (text) => {
        fc.pre(text.indexOf("@") !== text.length - 1 || text === "");
        expect(formatRef(splitRef(text))).toBe(text);
      }),
    );
  });
});

describe("nameProblem", () => {
  it.each(["a", "0", "my-env", "tau2", "a--b", "a".repeat(253)])("accepts '%s'", (name) => {
    expect(nameProblem(name)).toBeNull();
    expect(parseName(name)).toBe(name);
  });

  it.each([
    ["", "the name is empty"],
    ["-a", "must begin and end with a letter or digit"],
    ["a-", "must begin and end with a letter or digit"],
    ["-", "must begin and end with a letter or digit"],
    ["My-Env", "only lower-case letters"],
    ["a b", "only lower-case letters"],
    ["a_b", "only lower-case letters"],
    ["a@1", "only lower-case letters"],
    ["a/b", "only lower-case letters"],
    ["ä", "only lower-case letters"],
    ["a\n", "only lower-case letters"],
    ["a".repeat(254), "254 characters; at most 253"],
  ])("says what is wrong with %j", (name, text) => {
    expect(nameProblem(name)).toContain(text);
    expect(() => parseName(name)).toThrow(text);
  });

  it("is the rule of the command line for any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "z", "0", "9", "-", "A", "_", " "), maxLength: 6 }), (name) => {
        const isFine = /^[a-z0-9-]+$/.test(name) && !name.startsWith("-") && !name.endsWith("-");
        expect(nameProblem(name) === null).toBe(isFine);
      }),
    );
  });
});

describe("versionProblem", () => {
  it.each(["1", "1.0.0", "0.1.9-rc.1", "1.0.0+build.5", "v2", "2024-11-16", "1_2", "1.0.0-x86"])("takes %j", (version) => {
    expect(versionProblem(version)).toBeNull();
  });

  it.each(["", " ", "latest", "banana", "^1.2", "1.x", "x.1", ">=1", "1.0.0 ", "1/2", "../1", "a@1", ".1", "1\n", "1".repeat(129)])(
    "refuses %j",
    (version) => {
      expect(versionProblem(version)).not.toBeNull();
    },
  );

  it("describes a valid version", () => {
    expect(versionProblem("banana")).toContain("'banana' is not a version; a version looks like 1.0.0");
  });
});
