import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { StatusError, TransportError } from "./http-errors.ts";
import { mayRepeat, type RetryRule, retry, waitBefore } from "./retry.ts";

const neverLeft = new TransportError("refused", { wasSent: false });
const brokeOff = new TransportError("reset", { wasSent: true });
const status = (code: number, retryAfter: string | null = null) => new StatusError(code, "", retryAfter);

/** Throws each error in turn, then succeeds; counts the attempts. */
function failing(...errors: Error[]) {
  const attempts = { count: 0 };
  const attempt = async () => {
    const error = errors[attempts.count++];
    if (error !== undefined) throw error;
    return "done";
  };
  return { attempt, attempts };
}

describe("mayRepeat", () => {
  it.each<[RetryRule, Error, boolean]>([
    ["idempotent", neverLeft, true],
    ["idempotent", brokeOff, true],
    ["idempotent", status(429), true],
    ["idempotent", status(502), true],
    ["idempotent", status(503), true],
    ["idempotent", status(504), true],
    ["idempotent", status(500), false],
    ["idempotent", status(404), false],
    ["keyed", brokeOff, true],
    ["keyed", status(429), true],
    ["keyed", status(503), true],
    ["keyed", status(502), false],
    ["keyed", status(504), false],
    ["once", neverLeft, true],
    ["once", brokeOff, false],
    ["once", status(429), false],
    ["once", status(503), false],
    ["idempotent", new Error("a bug"), false],
  ])("for a request that is %s, after %s: %s", (rule, error, expected) => {
    expect(mayRepeat(rule, error)).toBe(expected);
  });
});

describe("retry", () => {
  it("retries until success, with growing waits", async () => {
    const clock = fakeClock();
    const { attempt, attempts } = failing(brokeOff, status(503), brokeOff);
    expect(await retry(attempt, { rule: "idempotent", maxRetries: 10, clock })).toBe("done");
    expect(attempts.count).toBe(4);
    expect(clock.sleeps).toEqual([75, 150, 300]);
  });

  it("throws the last error after the last attempt", async () => {
    const { attempt, attempts } = failing(brokeOff, brokeOff, status(503), brokeOff);
    await expect(retry(attempt, { rule: "idempotent", maxRetries: 2, clock: fakeClock() })).rejects.toThrow("HTTP 503");
    expect(attempts.count).toBe(3);
  });

  it("does not start a wait that ends after the deadline", async () => {
    const clock = fakeClock();
    const { attempt, attempts } = failing(brokeOff, brokeOff, brokeOff, brokeOff);
    const deadlineAt = clock.now() + 300;
    await expect(retry(attempt, { rule: "idempotent", maxRetries: 10, clock, deadlineAt })).rejects.toBe(brokeOff);
    expect(attempts.count).toBe(3);
  });

  it("waits for the time of Retry-After", async () => {
    const clock = fakeClock();
    await retry(failing(status(429, "7")).attempt, { rule: "idempotent", maxRetries: 1, clock });
    expect(clock.sleeps).toEqual([7_000]);
  });

  it("throws when Retry-After is too long", async () => {
    const { attempt, attempts } = failing(status(429, "3600"));
    await expect(retry(attempt, { rule: "idempotent", maxRetries: 5, clock: fakeClock() })).rejects.toThrow("HTTP 429");
    expect(attempts.count).toBe(1);
  });

  it("stops when the caller aborts", async () => {
    const controller = new AbortController();
    const attempts = { count: 0 };
    const attempt = async () => {
      attempts.count++;
      controller.abort(new Error("enough"));
      throw brokeOff;
    };
    await expect(retry(attempt, { rule: "idempotent", maxRetries: 5, clock: fakeClock(), signal: controller.signal })).rejects.toBe(
      brokeOff,
    );
    expect(attempts.count).toBe(1);
  });
});

describe("waitBefore", () => {
  it("is between half and all of a doubling time, and never more than five seconds", () => {
    const chance = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.nat({ max: 60 }), chance, (tried, random) => {
        const whole = Math.min(5_000, 100 * 2 ** tried);
        const waitMs = waitBefore(tried, brokeOff, { random: () => random });
        expect(waitMs).toBeGreaterThanOrEqual(whole / 2);
        expect(waitMs).toBeLessThanOrEqual(whole);
      }),
    );
  });
});
