import { describe, expect, it } from "vitest";
import { controlEnvelope, sandboxEnvelope, sandboxFailure } from "./envelope.ts";
import { PlatformError } from "./errors.ts";

describe("controlEnvelope", () => {
  it.each([
    [{ success: true, code: 0, message: "", data: { id: "x" } }],
    [{ success: false, code: 500, message: "Failed to query: …", data: null }],
    [
      {
        success: false,
        code: 404,
        message: "not found",
        data: null,
        error: { code: "instance.not_found", retryable: false, requestId: "r" },
      },
    ],
  ])("reads what the services answer: %j", (body) => {
    expect(controlEnvelope.parse(body)).toEqual(body);
  });

  it("reads a missing `success` as true, as the original's client does, and accepts a response without a message", () => {
    expect(controlEnvelope.parse({ code: 0, data: [] })).toMatchObject({ success: true, data: [] });
  });

  it("ignores an `error` of another form", () => {
    expect(controlEnvelope.parse({ success: false, data: null, error: "text" }).error).toBeNull();
    expect(controlEnvelope.parse({ success: false, data: null, error: { code: 5 } }).error).toBeNull();
  });

  it("keeps unknown fields", () => {
    expect(controlEnvelope.parse({ success: false, data: null, errorMessage: "old" })).toMatchObject({ errorMessage: "old" });
  });

  it.each([null, "404 page not found", [], { success: "yes" }])("refuses %j", (body) => {
    expect(controlEnvelope.safeParse(body).success).toBe(false);
  });
});

describe("sandboxEnvelope", () => {
  it("reads success and failure", () => {
    expect(sandboxEnvelope.parse({ success: true, data: 1 })).toEqual({ success: true, data: 1 });
    expect(sandboxEnvelope.parse({ success: false, error: "no" })).toEqual({ success: false, error: "no" });
  });

  it("requires `success`", () => {
    expect(sandboxEnvelope.safeParse({ data: 1 }).success).toBe(false);
  });

  it("has the error code besides the original's text, and reads it back", () => {
    const failure = sandboxFailure(new PlatformError("environment.unhealthy", "the kettle is cold"));
    expect(failure).toEqual({
      success: false,
      error: "the kettle is cold",
      errorInfo: { code: "environment.unhealthy", retryable: true },
    });
    expect(sandboxEnvelope.parse(JSON.parse(JSON.stringify(failure)))).toEqual(failure);
  });
});
