import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { CircuitBreaker } from "./breaker.ts";

function broken(clock = fakeClock()) {
  const breaker = new CircuitBreaker(clock);
  for (let at = 0; at < 5; at++) breaker.fail();
  return { breaker, clock };
}

describe("CircuitBreaker", () => {
  it("allows calls until five in a row have failed", () => {
    const breaker = new CircuitBreaker(fakeClock());
    for (let at = 0; at < 4; at++) breaker.fail();
    expect(breaker.enter()).toBe(0);
    breaker.fail();
    expect(breaker.enter()).toBeGreaterThan(0);
  });

  it("starts to count again after a success", () => {
    const breaker = new CircuitBreaker(fakeClock());
    for (let at = 0; at < 4; at++) breaker.fail();
    breaker.succeed();
    breaker.fail();
    expect(breaker.enter()).toBe(0);
  });

  it("allows one probe after the pause, and no second call at the same time", () => {
    const { breaker, clock } = broken();
    clock.advance(30_000);
    expect(breaker.enter()).toBe(0);
    expect(breaker.enter()).toBeGreaterThan(0);
  });

  it("closes when the probe succeeds, and opens for another pause when it fails", () => {
    const { breaker, clock } = broken();
    clock.advance(30_000);
    breaker.enter();
    breaker.fail();
    expect(breaker.enter()).toBe(30_000);
    clock.advance(30_000);
    breaker.enter();
    breaker.succeed();
    expect(breaker.enter()).toBe(0);
    expect(breaker.failures).toBe(0);
  });

  it("allows the next call as the probe when the first one was aborted", () => {
    const { breaker, clock } = broken();
    clock.advance(30_000);
    breaker.enter();
    breaker.cancel();
    expect(breaker.enter()).toBe(0);
  });

  it("never allows a call during the pause, and always allows one after it", () => {
    const steps = fc.array(fc.oneof(fc.constantFrom("fail", "succeed", "cancel"), fc.nat({ max: 40_000 })));
    fc.assert(
      fc.property(steps, (taken) => {
        const clock = fakeClock();
        const breaker = new CircuitBreaker(clock);
        let inRow = 0;
        let openedAt = Number.NEGATIVE_INFINITY;
        for (const step of taken) {
          if (typeof step === "number") {
            clock.advance(step);
            continue;
          }
          const isOpen = inRow >= 5 && clock.now() - openedAt < 30_000;
          expect(breaker.enter() > 0).toBe(isOpen);
          if (isOpen) continue;
          if (step === "fail") breaker.fail();
          else if (step === "succeed") breaker.succeed();
          else breaker.cancel();
          if (step === "fail") {
            inRow++;
            openedAt = clock.now();
          } else if (step === "succeed") inRow = 0;
        }
      }),
    );
  });
});
