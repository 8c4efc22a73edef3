import { describe, expect, it } from "vitest";
import { readFailure } from "./failure.ts";
import { StatusError } from "./http-errors.ts";

function read(status: number, body: unknown) {
  return readFailure(new StatusError(status, typeof body === "string" ? body : JSON.stringify(body), null), "instance.not_found");
}

describe("readFailure", () => {
  it("keeps the code, the message and the request id of a control plane", () => {
    const error = { code: "quota.exceeded", retryable: false, requestId: "r1" };
    expect(read(429, { success: false, code: 429, message: "too many", data: null, error })).toEqual({
      message: "too many",
      code: "quota.exceeded",
      isNamed: true,
      retryable: false,
      requestId: "r1",
    });
  });

  it("keeps the code of a sandbox", () => {
    const body = { success: false, error: "no such task", errorInfo: { code: "task.not_found", retryable: false } };
    expect(read(404, body)).toMatchObject({ message: "no such task", code: "task.not_found", isNamed: true });
  });

  it("keeps the code inside a JSON-RPC error's data", () => {
    const body = { jsonrpc: "2.0", id: null, error: { code: -32000, message: "draining", data: { code: "server.draining" } } };
    expect(read(503, body)).toMatchObject({ message: "draining", code: "server.draining", isNamed: true });
  });

  it("joins the gateway's error with its details", () => {
    expect(read(502, { error: "Failed to forward", details: "dial tcp" })).toMatchObject({
      message: "Failed to forward: dial tcp",
      code: "network.failed",
    });
  });

  it("recognises not found in the original's 500", () => {
    expect(read(500, { success: false, message: 'Failed to query: request failed with status: 404, body: pods "x" not found' }).code).toBe(
      "instance.not_found",
    );
    expect(read(500, { success: false, message: "Failed to find environment: request failed with status: 404, body: {}" }).code).toBe(
      "environment.not_found",
    );
  });

  it("maps the original's instance limit to the quota code", () => {
    expect(read(403, { success: false, message: "Instance count exceeds limit: 2" }).code).toBe("quota.exceeded");
    expect(read(403, { success: false, message: "token required" }).code).toBe("access.denied");
  });

  it.each([
    [400, "request.invalid"],
    [401, "access.unauthenticated"],
    [404, "instance.not_found"],
    [413, "request.too_large"],
    [418, "request.invalid"],
    [500, "internal"],
    [504, "request.timeout"],
  ])("derives the code of a plain text from the status %i", (status, code) => {
    expect(read(status, "just text")).toEqual({ message: "just text", code, isNamed: false });
  });

  it("truncates a long body, and reports an empty one", () => {
    expect(read(500, "x".repeat(5_000)).message.length).toBeLessThan(250);
    expect(read(502, "").message).toBe("HTTP 502 without a body");
  });

  it("ignores a code that is not in the table", () => {
    expect(read(400, { success: false, message: "no", error: { code: "made.up" } })).toMatchObject({
      code: "request.invalid",
      isNamed: false,
    });
  });
});
