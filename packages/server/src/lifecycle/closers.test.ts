import { describe, expect, it } from "vitest";
import { Closers } from "./closers.ts";

describe("closers", () => {
  it("are called in reverse order, all of them despite failures, and only once", async () => {
    const closers = new Closers();
    const closed: number[] = [];
    for (const n of [1, 2, 3, 4]) {
      closers.add(async () => {
        closed.push(n);
        if (n % 2 === 0) throw new Error(`${n} does not close`);
      });
    }
    await expect(closers.close()).rejects.toThrow("4 does not close");
    await closers.close();
    expect(closed).toEqual([4, 3, 2, 1]);
  });
});
