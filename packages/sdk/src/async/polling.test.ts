import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { poll } from "./polling.ts";

const interval = { minMs: 50, maxMs: 1_000 };

describe("poll", () => {
  it("queries at once, then at growing intervals up to the maximum", async () => {
    const clock = fakeClock();
    let asked = 0;
    expect(await poll(async () => (++asked === 11 ? "there" : null), { clock, timeoutMs: 60_000, interval })).toBe("there");
    expect(clock.sleeps.slice(0, 3)).toEqual([50, 75, 112.5]);
    expect(clock.sleeps.at(-1)).toBe(1_000);
    expect(clock.sleeps).toHaveLength(10);
  });

  it("returns null after the timeout, and passes the time that is left", async () => {
    const clock = fakeClock();
    const left: number[] = [];
    const ask = async (leftMs: number) => {
      left.push(leftMs);
      return null;
    };
    expect(await poll(ask, { clock, timeoutMs: 120, interval })).toBeNull();
    expect(left).toEqual([120, 70]);
  });

  it("stops with the signal's reason", async () => {
    const controller = new AbortController();
    const ask = async () => {
      controller.abort(new Error("enough"));
      return null;
    };
    await expect(poll(ask, { clock: fakeClock(), timeoutMs: 1_000, interval, signal: controller.signal })).rejects.toThrow("enough");
  });
});
