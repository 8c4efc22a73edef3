import { describe, expect, it } from "vitest";
import { endOf } from "./output.ts";

const numbers = Array.from({ length: 9 }, (_, at) => `line ${at + 1}`);

describe("the end of what a builder printed", () => {
  it("is its last lines", () => {
    expect(endOf(`${numbers.join("\n")}\n\n`)).toBe(numbers.slice(-5).join("\n"));
    expect(endOf("alone\n")).toBe("alone");
    expect(endOf("")).toBe("");
    expect(endOf("\u001b[91mred\u001b[0m\n")).toBe("red");
  });

  it("begins with the step that failed, if BuildKit names one", () => {
    const failed = [" > [1/1] COPY missing /:", "------", "Dockerfile:2", ...numbers, 'ERROR: failed to solve: "/missing": not found'];
    expect(endOf([...numbers, "------", ...failed, ""].join("\r\n"))).toBe(failed.join("\n").trim());
  });
});
