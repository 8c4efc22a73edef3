import { describe, expect, it } from "vitest";
import { describeEnding } from "./exit-reason.ts";

const quiet = { lines: [], memoryMb: null };

describe("the reason of an end", () => {
  it("names the exit code, or the signal", () => {
    expect(describeEnding({ ...quiet, exit: { code: 3, signal: null } })).toBe("the program ended by itself with exit code 3");
    expect(describeEnding({ ...quiet, exit: { code: null, signal: "SIGSEGV" } })).toBe("the program was ended by SIGSEGV");
  });

  it("hints at memory when someone else killed it", () => {
    expect(describeEnding({ lines: [], memoryMb: 64, exit: { code: null, signal: "SIGKILL" } })).toBe(
      "the program was killed from outside, as the system does when memory runs short (it may have 64 MB)",
    );
  });

  it("quotes the error rather than the stack below it", () => {
    const lines = ["/app/main.js:3", "TypeError: x is not a function", "    at main (/app/main.js:3:1)", "", "Node.js v24.21.0"];
    expect(describeEnding({ lines, memoryMb: null, exit: { code: 1, signal: null } })).toMatch(
      /exit code 1; it last printed: TypeError: x is not a function$/,
    );
  });

  it("quotes the last line that says something, shortened", () => {
    expect(describeEnding({ lines: ["done", "", " "], memoryMb: null, exit: null })).toMatch(/unknown.*; it last printed: done$/);
    expect(describeEnding({ lines: ["x".repeat(1_000)], memoryMb: null, exit: null }).length).toBeLessThan(500);
  });
});
