import { describe, expect, it } from "vitest";
import { Concurrency } from "./concurrency.ts";

describe("concurrency", () => {
  it("halves when the endpoint is busy, once for all signs of one moment", () => {
    const concurrency = new Concurrency({ max: 64 });
    concurrency.noteBusy(100, 0);
    concurrency.noteBusy(100, 500);
    expect(concurrency.limit).toBe(32);
    concurrency.noteBusy(100, 2_000);
    expect(concurrency.limit).toBe(16);
  });

  it("grows again by one after each round of episodes, up to the maximum", async () => {
    const concurrency = new Concurrency({ max: 4, first: 2 });
    for (let n = 0; n < 20; n++) {
      await concurrency.begin();
      concurrency.end();
    }
    expect(concurrency.limit).toBe(4);
  });

  it("never goes below one", () => {
    const concurrency = new Concurrency({ max: 2 });
    for (let at = 0; at < 10; at++) concurrency.noteBusy(0, at * 10_000);
    expect(concurrency.limit).toBe(1);
  });

  it("lets those that wait begin when others end", async () => {
    const concurrency = new Concurrency({ max: 1 });
    await concurrency.begin();
    let hasBegun = false;
    const second = concurrency.begin().then(() => {
      hasBegun = true;
    });
    expect(hasBegun).toBe(false);
    concurrency.end();
    await second;
    expect(concurrency.running).toBe(1);
  });
});
