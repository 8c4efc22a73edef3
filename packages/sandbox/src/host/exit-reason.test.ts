import { describe, expect, it } from "vitest";
import { describeExit } from "./exit-reason.ts";

const quiet = { lines: [], memoryMb: null };

describe("the exit reason", () => {
  it("names the exit code, or the signal", () => {
    expect(describeExit({ ...quiet, exit: { code: 3, signal: null } })).toBe("the program exited with exit code 3");
    expect(describeExit({ ...quiet, exit: { code: null, signal: "SIGSEGV" } })).toBe("the program was ended by SIGSEGV");
  });

  it("names the memory limit after SIGKILL", () => {
    expect(describeExit({ lines: [], memoryMb: 64, exit: { code: null, signal: "SIGKILL" } })).toBe(
      "the program was killed by SIGKILL, as the system does when memory is exhausted (its limit is 64 MB)",
    );
  });

  it("quotes the error rather than the stack below it", () => {
    const lines = ["/app/main.js:3", "TypeError: x is not a function", "    at main (/app/main.js:3:1)", "", "Node.js v24.21.0"];
    expect(describeExit({ lines, memoryMb: null, exit: { code: 1, signal: null } })).toMatch(
      /exit code 1; it last printed: TypeError: x is not a function$/,
    );
  });

  it("quotes the last line with text, shortened", () => {
    expect(describeExit({ lines: ["done", "", " "], memoryMb: null, exit: null })).toMatch(/unknown.*; it last printed: done$/);
    expect(describeExit({ lines: ["x".repeat(1_000)], memoryMb: null, exit: null }).length).toBeLessThan(500);
  });
});
