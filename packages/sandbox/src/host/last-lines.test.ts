import { describe, expect, it } from "vitest";
import { LastLines } from "./last-lines.ts";

describe("LastLines", () => {
  it("keeps the newest lines in their order", () => {
    const last = new LastLines(3);
    for (let at = 0; at < 100; at++) last.push(`line ${at}`);
    expect(last.lines).toEqual(["line 97", "line 98", "line 99"]);
  });

  it("keeps fewer lines if they are long", () => {
    const last = new LastLines(1_000);
    for (let at = 0; at < 60; at++) last.push(`${at} ${"x".repeat(2 ** 20 - 10)}`);
    expect(last.lines.map((line) => line.split(" ")[0])).toEqual(Array.from({ length: 16 }, (_, at) => String(44 + at)));
  });
});
