import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../terminal/failure.ts";
import { parseJsonFile } from "./json-file.ts";

describe("parseJsonFile", () => {
  it("reads every JSON text as JSON.parse does", () => {
    fc.assert(fc.property(fc.json(), (text) => void expect(parseJsonFile("x.json", text).value).toEqual(JSON.parse(text))));
  });

  it("returns the location of each value, and for a missing one that of its parent", () => {
    const { placeOf } = parseJsonFile("x.json", '{\n  "a": 1,\n  "b": {\n    "c": [true, "x"]\n  }\n}');
    expect(placeOf(["a"])).toEqual({ file: "x.json", line: 2, column: 8 });
    expect(placeOf(["b", "c", 1])).toEqual({ file: "x.json", line: 4, column: 17 });
    expect(placeOf(["b", "missing"])).toEqual({ file: "x.json", line: 3, column: 8 });
    expect(placeOf(["missing"])).toEqual({ file: "x.json", line: 1, column: 1 });
  });

  it.each([
    ['{\n  "a": 1\n  "b": 2\n}', 3, "comma expected"],
    ['{\n  "a": 1,\n}', 3, "property name expected"],
    ["{\n  // no\n}", 2, "comment"],
    ['{ "a": ', 1, "value expected"],
    ["", 1, "value expected"],
  ])("locates the error in %j", (text, line, what) => {
    let thrown: unknown;
    try {
      parseJsonFile("x.json", text);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(Failure);
    const [problem] = (thrown as Failure).problems;
    expect(problem?.place?.line).toBe(line);
    expect(problem?.message).toContain(what);
  });
});
