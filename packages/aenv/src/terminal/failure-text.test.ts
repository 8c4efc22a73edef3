import { PlatformError } from "@aenv/contract";
import { temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { describe, expect, it } from "vitest";
import { Failure, failureAsJson, toFailure } from "./failure.ts";
import { failureText } from "./failure-text.ts";

const plain = picocolors.createColors(false);

describe("a failure", () => {
  it("shows its line between the neighbours, a caret, and the hint", () => {
    using tree = temporaryTree({ "src/a.ts": "one\n\ttwo three\nfour\nfive" });
    const place = { file: `${tree.path}/src/a.ts`, line: 2, column: 6 };
    const failure = new Failure([{ message: "wrong word", place }], { hint: "Write another." });
    expect(failureText(failure, plain, tree.path)).toBe(
      ["✖ src/a.ts:2:6 wrong word", "    1 │ one", "  > 2 │  two three", "      │      ^", "    3 │ four", "→ Write another."].join("\n"),
    );
  });

  it("omits the line if the file or the line does not exist", () => {
    const failure = new Failure([{ message: "gone", place: { file: "/nowhere/a.ts", line: 9, column: 1 } }]);
    expect(failureText(failure, plain, "/")).toBe("✖ nowhere/a.ts:9:1 gone");
  });

  it("keeps the platform's code and location, and has a hint", () => {
    const place = { file: "/x/a.ts", line: 3, column: 4 };
    const failure = toFailure(new PlatformError("environment.invalid", "twice", { details: { place } }));
    expect(failureAsJson(failure).error).toMatchObject({ code: "environment.invalid", problems: [{ message: "twice", ...place }] });
    expect(toFailure(new PlatformError("network.failed", "no"))).toMatchObject({
      exit: "unreachable",
      hint: expect.stringContaining("aenv run"),
    });
    expect(toFailure(new PlatformError("request.invalid", "no")).exit).toBe("usage");
  });

  it("names --verbose for an unexpected error, which prints the stack", () => {
    const failure = toFailure(new TypeError("oops"));
    expect(failureText(failure, plain, "/")).toBe("✖ oops\n→ Run it again with --verbose to see the stack.");
    expect(failureText(failure, plain, "/", true)).toContain("TypeError: oops\n    at ");
  });
});
