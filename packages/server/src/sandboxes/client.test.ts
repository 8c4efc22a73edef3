import { once } from "node:events";
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { setImmediate } from "node:timers/promises";
import { type ErrorCode, isErrorCode, PlatformError } from "@aenv/contract";
import { MemoryEngine } from "@aenv/sandbox";
import { describe, expect, it, onTestFinished } from "vitest";
import { requestSandbox, SandboxClients, type SandboxRequest } from "./client.ts";
import { responseLimits } from "./response-limits.ts";

const PIECE = Buffer.alloc(64 * 1024, 32);

/** A sandbox with the given responses. Only `/health` has its own, because the engine waits for it. */
async function openSandbox(answer: RequestListener) {
  const engine = new MemoryEngine({
    start: () => (request, response) => void (request.url === "/health" ? response.end("{}") : answer(request, response)),
  });
  const clients = new SandboxClients();
  onTestFinished(async () => {
    await clients.close();
    await engine.close();
  });
  const spec = { id: "sandbox", command: ["x"], variables: {}, labels: {}, startTimeoutMs: 5_000 };
  const sandbox = await engine.create(spec, new AbortController().signal);
  const ask = (more: Partial<SandboxRequest> = {}) =>
    requestSandbox(clients, sandbox.id, sandbox.address, {
      method: "POST",
      path: "/task/reset",
      timeoutMs: 60_000,
      maxBytes: responseLimits.instance,
      ...more,
    });
  return { ask, sandbox, clients };
}

const gone = (response: ServerResponse) => (response.destroyed ? Promise.resolve() : once(response, "close"));

describe("a request to a sandbox", () => {
  it("returns the data, up to the limit", async () => {
    const text = "x".repeat(responseLimits.instance - 100);
    const { ask } = await openSandbox((_, response) => void response.end(JSON.stringify({ success: true, data: text })));
    expect(await ask()).toBe(text);
  });

  it("fails at the limit if the response never ends: the error names the limit, and the connection is closed", async () => {
    let sent = 0;
    const closed = Promise.withResolvers<void>();
    const { ask } = await openSandbox(async (_, response) => {
      response.on("close", () => closed.resolve());
      while (!response.destroyed) {
        sent += PIECE.length;
        if (!response.write(PIECE)) await Promise.race([once(response, "drain"), once(response, "close")]);
      }
    });
    await expect(ask()).rejects.toMatchObject({
      code: "sandbox.answer_too_large",
      message: `the sandbox answered /task/reset with more than ${responseLimits.instance} bytes, the limit for this`,
      details: { limit: responseLimits.instance },
    });
    await closed.promise;
    // What is in the buffers of the two sockets, and no more.
    expect(sent).toBeLessThan(8 * 1024 * 1024);
  });

  it("fails if the JSON of the response is nested deeper than 200 levels", async () => {
    const deep = `{"success":true,"data":${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
    const { ask } = await openSandbox((_, response) => void response.end(deep));
    await expect(ask()).rejects.toMatchObject({
      code: "sandbox.answer_too_large",
      message: "the answer of the sandbox to /task/reset is not read: its JSON is nested deeper than 200 levels",
    });
  });

  it("does not read a response whose content-length is too large", async () => {
    const closed = Promise.withResolvers<void>();
    const { ask } = await openSandbox((_, response) => {
      response.on("close", () => closed.resolve());
      response.writeHead(200, { "content-length": responseLimits.instance + 1 });
      response.flushHeaders();
    });
    await expect(ask()).rejects.toMatchObject({ code: "sandbox.answer_too_large" });
    await closed.promise;
  });

  it.each(["no headers", "no end"])("times out if the response has %s, and the sandbox sees it aborted", async (kind) => {
    const closed = Promise.withResolvers<void>();
    let isAsked = false;
    const { ask } = await openSandbox((_, response) => {
      isAsked = true;
      response.on("close", () => closed.resolve());
      if (kind === "no end") response.write('{"success":');
    });
    // On a busy machine, the time is over before the sandbox has seen the request.
    for (let timeoutMs = 20; !isAsked; timeoutMs *= 2)
      await expect(ask({ timeoutMs })).rejects.toMatchObject({
        code: "request.timeout",
        message: `the sandbox did not answer /task/reset within ${timeoutMs} ms`,
      });
    await closed.promise;
  });

  it("is aborted when the client disconnects, and the sandbox sees that", async () => {
    const asked = Promise.withResolvers<ServerResponse>();
    const { ask } = await openSandbox((_: IncomingMessage, response) => asked.resolve(response));
    const client = new AbortController();
    const left = new PlatformError("request.cancelled", "the client went away");
    const answer = ask({ signal: client.signal });
    const response = await asked.promise;
    client.abort(left);
    await expect(answer).rejects.toBe(left);
    await gone(response);
    await setImmediate();
  });

  it.each([
    ["instance.setup_failed", "instance.setup_failed"],
    ["task.not_found", "task.not_found"],
    ["store.unavailable", "instance.failed"],
    ["quota.exceeded", "instance.failed"],
    ["access.unauthenticated", "instance.failed"],
    ["made.up", "sandbox.lost"],
  ])("that fails with %s is reported as %s: codes of the platform are not accepted from a sandbox", async (code, taken) => {
    expect(isErrorCode(taken)).toBe(true);
    const refusal = { success: false, error: "no", errorInfo: { code, retryable: false } };
    const { ask } = await openSandbox((_, response) => void response.writeHead(500).end(JSON.stringify(refusal)));
    await expect(ask()).rejects.toMatchObject({ code: taken as ErrorCode, message: "no" });
  });

  it("fails with a message of at most a few thousand characters, because rows store it", async () => {
    const refusal = { success: false, error: "e".repeat(50_000), errorInfo: { code: "instance.setup_failed", retryable: false } };
    const { ask } = await openSandbox((_, response) => void response.writeHead(500).end(JSON.stringify(refusal)));
    const error = await ask().catch((thrown: unknown) => thrown);
    expect((error as Error).message).toBe(`${"e".repeat(4_000)}...`);
  });
});
