import { describe, expect, it } from "vitest";
import { takeTurns } from "./rounds.ts";

describe("takeTurns", () => {
  it("runs each once a round, starting with another every time", async () => {
    let at = 0;
    const next = async () => at++;
    expect(await takeTurns(4, { a: next, b: next, c: next })).toEqual({ a: [0, 5, 7, 9], b: [1, 3, 8, 10], c: [2, 4, 6, 11] });
  });
});
