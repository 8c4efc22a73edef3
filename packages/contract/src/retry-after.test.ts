import { describe, expect, it } from "vitest";
import { PlatformError } from "./errors.ts";
import { parseRetryAfter, retryAfterOf } from "./retry-after.ts";

describe("retryAfterOf", () => {
  it("is the error's own number of seconds, or one, if waiting helps", () => {
    expect(retryAfterOf(new PlatformError("instance.starting", ""))).toBe("1");
    expect(retryAfterOf(new PlatformError("sandbox.lost", ""))).toBe("1");
    expect(retryAfterOf(new PlatformError("quota.exceeded", "", { details: { retryAfterSeconds: 60 } }))).toBe("60");
    expect(retryAfterOf(new PlatformError("request.invalid", ""))).toBeNull();
  });
});

describe("parseRetryAfter", () => {
  it("reads seconds, dates, and nothing else", () => {
    const now = Date.parse("2026-01-12T03:25:46Z");
    expect(parseRetryAfter("2", now)).toBe(2_000);
    expect(parseRetryAfter("Mon, 12 Jan 2026 03:25:56 GMT", now)).toBe(10_000);
    expect(parseRetryAfter("Mon, 12 Jan 2026 03:25:36 GMT", now)).toBe(0);
    expect(parseRetryAfter("9".repeat(400), now)).toBe(600_000);
    expect(parseRetryAfter("soon", now)).toBeNull();
    expect(parseRetryAfter(null, now)).toBeNull();
  });
});
