import { describe, expect, it } from "vitest";
import { type ErrorCode, errorTable, isErrorCode, isPlatformError, messageOf, PlatformError } from "./errors.ts";

const codes = Object.keys(errorTable) as ErrorCode[];

describe("the error table", () => {
  it.each(codes)("has an error status and a meaning for %s", (code) => {
    const { status, meaning } = errorTable[code];
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(600);
    expect(meaning).toMatch(/^[a-z].*[^.]$/);
  });

  it("has codes of the form noun.problem, except `internal`", () => {
    for (const code of codes) expect(code).toMatch(/^(?:[a-z]+\.[a-z_]+|internal)$/);
  });

  it("marks no error as retryable whose request must be changed", () => {
    for (const code of codes) {
      const { status, retryable } = errorTable[code];
      if ([400, 401, 403, 404, 405, 409, 413].includes(status)) expect({ code, retryable }).toEqual({ code, retryable: false });
    }
  });

  it("marks no tool call as retryable, since it may have run", () => {
    for (const code of ["tool.failed", "tool.timeout"] as const) expect(errorTable[code].retryable).toBe(false);
  });

  it("has a different meaning for each code", () => {
    const meanings = codes.map((code) => errorTable[code].meaning);
    expect(new Set(meanings).size).toBe(meanings.length);
  });
});

describe("PlatformError", () => {
  it.each(codes)("takes status and retryable of %s from the table", (code) => {
    const error = new PlatformError(code, "text");
    expect(error).toMatchObject({ name: "PlatformError", code, message: "text", ...{ status: errorTable[code].status } });
    expect(error.retryable).toBe(errorTable[code].retryable);
    expect(error).toBeInstanceOf(Error);
  });

  it("keeps cause, details and request id, and a given retryable", () => {
    const cause = new Error("below");
    const error = new PlatformError("internal", "text", { cause, details: { id: "x" }, requestId: "r1", retryable: true });
    expect(error).toMatchObject({ cause, details: { id: "x" }, requestId: "r1", retryable: true });
  });

  it("has no cause and empty details when none are given", () => {
    const error = new PlatformError("internal", "text");
    expect("cause" in error).toBe(false);
    expect(error.details).toEqual({});
    expect(error.requestId).toBeUndefined();
  });
});

describe("isPlatformError", () => {
  it("checks the class, and the codes if any are given", () => {
    const error = new PlatformError("task.not_found", "text");
    expect(isPlatformError(error)).toBe(true);
    expect(isPlatformError(error, "internal", "task.not_found")).toBe(true);
    expect(isPlatformError(error, "internal")).toBe(false);
    for (const other of [new Error("x"), { code: "internal" }, null, undefined, "internal"]) expect(isPlatformError(other)).toBe(false);
  });
});

describe("isErrorCode", () => {
  it("accepts the codes of the table and no property of Object.prototype", () => {
    for (const code of codes) expect(isErrorCode(code)).toBe(true);
    for (const other of ["toString", "__proto__", "constructor", "", 400, null]) expect(isErrorCode(other)).toBe(false);
  });
});

describe("messageOf", () => {
  it("returns the message of a thrown value, never a stack", () => {
    expect(messageOf(new Error("no ink"))).toBe("no ink");
    expect(messageOf(new TypeError(""))).toBe("TypeError");
    expect(messageOf("plain")).toBe("plain");
    expect(messageOf(42)).toBe("42");
    expect(messageOf(undefined)).toBe("undefined");
    expect(messageOf(null)).toBe("null");
  });
});
