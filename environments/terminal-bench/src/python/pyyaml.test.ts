import { describe, expect, it } from "vitest";
import { parseYaml, YamlSyntaxError } from "./pyyaml.ts";

describe("YAML as PyYAML reads it", () => {
  it("has the words of YAML 1.1 for booleans, without y and n", () => {
    expect(parseYaml("[yes, No, ON, off, true, y, n]")).toEqual([true, false, true, false, true, "y", "n"]);
  });

  it("has octal and sexagesimal numbers, and floats only with a dot", () => {
    expect(parseYaml("[010, 0x1F, 1_000, 1:30, 1.5, 1e3, 1.0e+3, .5, 08, -.inf]")).toEqual([
      8n,
      31n,
      1000n,
      90n,
      1.5,
      "1e3",
      1000,
      0.5,
      "08",
      Number.NEGATIVE_INFINITY,
    ]);
  });

  it("has nothing for null, and texts for dates", () => {
    expect(parseYaml("{a: ~, b: , c: null, d: 2026-01-02, e: 'null', f: !!str 1}")).toEqual({
      a: null,
      b: null,
      c: null,
      d: "2026-01-02",
      e: "null",
      f: "1",
    });
  });

  it("merges keys and keeps the last of repeated ones", () => {
    expect(parseYaml("base: &b {x: 1}\ncopy:\n  <<: *b\n  y: 2")).toMatchObject({ copy: { x: 1n, y: 2n } });
    expect(parseYaml("a: x\na: y")).toEqual({ a: "y" });
  });

  it("refuses what is not YAML", () => {
    expect(() => parseYaml("a: [1")).toThrow(YamlSyntaxError);
  });
});
