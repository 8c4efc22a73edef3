import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isResolved, PARSERS, parseTestLog, plainLog } from "./parsers.ts";

describe("logs of tests", () => {
  it("without terminal sequences can be parsed", () => {
    const log = plainLog("\x1b[1m=== short test summary info ===\x1b[0m\r\n\x1b[32mPASSED\x1b[0m a.py::t\r\n");
    expect(parseTestLog("pytest", log)).toEqual(new Map([["t", "passed"]]));
  });

  it("without tests are not resolved", () => {
    const results = parseTestLog("pytest", "== short test summary info ==\n");
    expect(results).toEqual(new Map());
    expect(results && isResolved(results)).toBe(false);
  });

  it("of any kind are parsed or refused, never a crash", () => {
    fc.assert(
      fc.property(fc.constantFrom(...PARSERS), fc.string({ unit: "binary" }), (parser, log) => parseTestLog(parser, log) !== undefined),
    );
  });
});
