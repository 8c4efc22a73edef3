import { PlatformError } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import { type Served, serve } from "../serve/serve.ts";
import { describeFailure } from "./failure-log.ts";

let lines: string[] = [];
let served: Served | null = null;
afterEach(async () => {
  await served?.close();
  served = null;
  lines = [];
});

async function start(definition: object): Promise<Served> {
  const writeLog = (text: string) => void lines.push(text);
  served = await serve(definition as EnvironmentDefinition, { name: "shop", version: "1.0.0", port: 0, writeLog });
  return served;
}

async function ask(method: string, path: string, body?: object): Promise<string> {
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const response = await fetch(`${served?.url}${path}`, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
  return response.text();
}

const callTool = (name: string, args: object = {}) =>
  ask("POST", "/mcp", { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });

function boom(): never {
  throw new Error("boom");
}

describe("an exception of the environment's code", () => {
  it.each([
    ["tool 'sync' of instance 'default'", () => callTool("sync")],
    ["tool 'async' of instance 'default'", () => callTool("async")],
    ["tool 'checked' of instance 'default'", () => callTool("checked", { n: 1 })],
    ["function 'peek' of instance 'default'", () => ask("POST", "/functions/peek", {})],
    ["reward 'score' of instance 'default'", () => ask("POST", "/task/reward", {})],
    ["health check of instance 'default'", () => ask("GET", "/health")],
    ["tasks", () => ask("GET", "/task/list")],
    ["snapshot of instance 'default'", () => ask("POST", "/state/snapshot", {})],
    ["observe of instance 'default'", () => ask("POST", "/task/reset", {})],
    ["setup of instance 'second'", () => ask("POST", "/env-instance", { id: "second" })],
  ])("in %s is logged once with its stack, and only its message is returned", async (what, call) => {
    await start({
      setup: ({ instanceId }: { instanceId: string }) => (instanceId === "second" ? boom() : {}),
      observe: boom,
      snapshot: boom,
      tasks: boom,
      health: boom,
      tools: [
        { name: "sync", run: boom },
        { name: "async", run: async () => boom() },
        { name: "checked", input: z.object({ n: z.number().refine(boom) }), run: () => "" },
      ],
      functions: [{ name: "peek", run: boom }],
      rewards: [{ name: "score", score: boom }],
    });
    const answer = await call();
    expect(answer).toContain("boom");
    expect(answer).not.toMatch(/failure-log\.test|\bat\b.*:\d+/);
    expect(lines).toHaveLength(1);
    expect(lines[0]?.startsWith(`${what} failed: Error: boom\n    at `)).toBe(true);
    expect(lines[0]).toContain("failure-log.test.ts");
  });

  it("is not logged if the call was refused, timed out or was cancelled", async () => {
    await start({
      tools: [
        { name: "typed", input: z.object({ n: z.number() }), run: () => "" },
        { name: "slow", timeoutMs: 1, run: () => new Promise(() => {}) },
        { name: "refused", run: () => Promise.reject(new PlatformError("task.not_found", "there is no such task")) },
      ],
      functions: [{ name: "typed", input: z.object({ n: z.number() }), run: () => "" }],
    });
    for (const name of ["typed", "slow", "refused"]) expect(await callTool(name, { n: "x" })).toContain('"isError":true');
    await ask("POST", "/functions/typed", { n: "x" });
    await ask("POST", "/task/reset", { seed: "x" });
    await ask("POST", "/task/reward", {});
    expect(lines).toEqual([]);
  });
});

describe("describeFailure", () => {
  it("includes the causes, and no other property of the error", () => {
    const error = Object.assign(new Error("outer", { cause: new TypeError("inner") }), { headers: { authorization: "sk-secret" } });
    const text = describeFailure("tool 'x'", error);
    expect(text).toMatch(/^tool 'x' failed: Error: outer\n {4}at /);
    expect(text).toMatch(/\n {4}caused by: TypeError: inner\n {4}at /);
    expect(text).not.toContain("sk-secret");
  });

  it("is bounded, also for cyclic causes", () => {
    const error = new Error("x".repeat(100_000));
    expect(describeFailure("tool 'x'", error).length).toBeLessThan(8_100);
    const ring = new Error("ring");
    ring.cause = ring;
    expect(describeFailure("tool 'x'", ring).split("caused by").length).toBe(5);
  });

  it("accepts any thrown value", () => {
    expect(describeFailure("tool 'x'", "text")).toBe("tool 'x' failed: text (not an Error, so it has no stack)");
    expect(describeFailure("tool 'x'", undefined)).toContain("undefined");
    expect(describeFailure("tool 'x'", Object.create(null))).toContain("object");
  });

  it("keeps a message from imitating log lines or controlling the terminal", () => {
    const error = new Error("a\ntool 'forged' failed: b\u001b[2Jc\rd");
    error.stack = `Error: ${error.message}`;
    expect(describeFailure("tool 'x'", error)).toBe("tool 'x' failed: Error: a\n    tool 'forged' failed: b\\x1b[2Jc\\x0dd");
  });
});
