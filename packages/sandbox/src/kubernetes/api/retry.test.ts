import { PlatformError } from "@aenv/contract";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { KubernetesError } from "./error.ts";
import { type RetryQuestion, retryPauseMs } from "./retry.ts";

const question = { attempts: 1, hasPrecondition: false, random: 1 } satisfies Omit<RetryQuestion, "error">;
const answered = (status: number, reason = "", retryAfter: string | null = null) =>
  new KubernetesError(status, reason, "message", retryAfter);

describe("a request that failed", () => {
  it("is sent again after no answer, 429 and errors of the server", () => {
    for (const error of [new PlatformError("sandbox.lost", "no answer"), ...[429, 500, 502, 503, 504].map((status) => answered(status))])
      expect(retryPauseMs({ ...question, error })).toBe(100);
  });

  it("is not sent again if the answer is final", () => {
    for (const status of [400, 401, 403, 404, 410, 422]) expect(retryPauseMs({ ...question, error: answered(status) })).toBeNull();
  });

  it("is sent again after a conflict, unless the object exists or the request named a state", () => {
    expect(retryPauseMs({ ...question, error: answered(409, "Conflict") })).toBe(100);
    expect(retryPauseMs({ ...question, error: answered(409, "AlreadyExists") })).toBeNull();
    expect(retryPauseMs({ ...question, error: answered(409, "Conflict"), hasPrecondition: true })).toBeNull();
  });

  it("waits as long as the server says, and at most a minute", () => {
    expect(retryPauseMs({ ...question, error: answered(429, "", "7") })).toBe(7_000);
    expect(retryPauseMs({ ...question, error: answered(429, "", "86400") })).toBe(60_000);
    expect(retryPauseMs({ ...question, error: answered(429, "", "Tue, 17 Nov 2026 05:00:00 GMT") })).toBe(100);
  });

  it("is given up after a while, and waits longer each time", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 20 }), fc.double({ min: 0, max: 1, noNaN: true }), (attempts, random) => {
        const pause = retryPauseMs({ ...question, error: answered(503), attempts, random });
        if (attempts >= 8) return pause === null;
        return pause !== null && pause >= 50 * 2 ** (attempts - 1) * 0.5 && pause <= 5_000;
      }),
    );
  });
});
