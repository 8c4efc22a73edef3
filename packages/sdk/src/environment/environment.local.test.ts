import { defineEnvironment, type Served, serve } from "@aenv/kit";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { z } from "zod";
import { fakeClock } from "../../fixtures/fake-clock.ts";
import { deadUrl, httpServer, sendJson } from "../../fixtures/http-server.ts";
import { EnvironmentError, ToolError, ToolTimeoutError, ValidationError } from "../errors/errors.ts";
import type { ToolLog, ToolProgress } from "../mcp/client.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

const stopped = { reasons: [] as string[] };

const counter = defineEnvironment({
  setup: ({ task, seed }) => ({ count: Number(task?.start ?? 0), seed }),
  tasks: () => Array.from({ length: 1_203 }, (_, at) => ({ id: `t${at}`, start: at, split: at % 2 === 0 ? "train" : "test" })),
  tools: [
    {
      name: "add",
      description: "Adds to the count.",
      input: z.object({ n: z.number() }),
      run: ({ n }, { state }) => {
        state.count += n;
        return { count: state.count };
      },
    },
    { name: "break", description: "Fails.", input: z.object({}), run: () => Promise.reject(new Error("it broke")) },
    {
      name: "dawdle",
      description: "Takes until it is stopped.",
      input: z.object({}),
      run: (_, { signal, log, progress }) => {
        log("info", "beginning");
        progress(1, 2, "half way");
        return new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            stopped.reasons.push(String(signal.reason));
            reject(signal.reason);
          });
        });
      },
    },
    {
      name: "tell",
      description: "Tells how far it is.",
      input: z.object({}),
      run: async (_, { log, progress }) => {
        log("info", "beginning");
        progress(1, 2, "half way");
        return "told";
      },
    },
  ],
  rewards: [
    { name: "high", weight: 2, score: ({ state }) => (state.count > 2 ? 1 : 0) },
    { name: "even", score: ({ state }) => (state.count % 2 === 0 ? 1 : 0) },
  ],
  functions: [
    { name: "peek", run: (_, { state }) => state.count },
    {
      name: "echo",
      endpoint: "/own/echo",
      method: "GET",
      input: z.object({ list: z.array(z.number()), text: z.string() }),
      run: (input) => input,
    },
    { name: "fail", run: () => Promise.reject(new Error("no such thing")) },
  ],
  health: ({ state }) => ({ status: state.count === 99 ? "sick" : "healthy" }),
});

let served: Served;
const open: Environment[] = [];
beforeAll(async () => {
  served = await serve(counter, { port: 0, name: "counter", version: "1.0.0" });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await Promise.all(open.splice(0).map((env) => env.release()));
});
afterAll(() => served.close());

/** A new environment: a slot in the served sandbox. */
async function counterEnv(options: EnvironmentOptions = {}): Promise<Environment> {
  const root = new Environment("counter@1.0.0", { instanceUrl: served.url });
  const [slot] = await root.fork(1);
  const { instanceId } = await (slot as Environment).getEnvInfo();
  const env = new Environment("counter@1.0.0", { instanceUrl: `${served.url}/env-instance/${instanceId}`, ...options });
  open.push(slot as Environment, env);
  return env;
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

describe("tools", () => {
  it("are listed with their full names, without calling initialize", async () => {
    const tools = await (await counterEnv()).listTools();
    expect(tools.map((tool) => tool.name)).toEqual(["add", "break", "dawdle", "tell"].map((name) => `counter@1.0.0/${name}`));
    expect(tools[0]).toMatchObject({ description: "Adds to the count.", inputSchema: { type: "object", required: ["n"] } });
  });

  it("are called by their plain and by their full name", async () => {
    const env = await counterEnv();
    expect((await env.callTool("add", { n: 2 })).json()).toEqual({ count: 2 });
    const result = await env.callTool("counter@1.0.0/add", { n: 3 });
    expect(result.structuredContent ?? result.json()).toEqual({ count: 5 });
    expect(result.isError).toBe(false);
  });

  it("that fail, or get wrong arguments, answer with isError", async () => {
    const env = await counterEnv();
    expect(await env.callTool("break", {})).toMatchObject({ isError: true, text: expect.stringContaining("it broke") });
    expect(await env.callTool("add", { n: "two" })).toMatchObject({ isError: true, text: expect.stringContaining("n") });
  });

  it("of another environment, or of none, are a ToolError", async () => {
    const env = await counterEnv();
    expect(await failure(env.callTool("other@1.0.0/add", { n: 1 }))).toMatchObject({ name: "ToolError", code: "tool.not_found" });
    const error = await failure(env.callTool("subtract", { n: 1 }));
    expect(error).toBeInstanceOf(ToolError);
    expect(error).toMatchObject({ code: "tool.not_found", toolName: "subtract" });
  });

  it("accept only an object that can be written as JSON", async () => {
    const env = await counterEnv();
    expect(await failure(env.callTool("add", { n: 1n }))).toBeInstanceOf(ValidationError);
    expect(await failure(env.callFunction("peek", { n: 1n }))).toBeInstanceOf(ValidationError);
    expect(await failure(env.callTool("add", [1] as never))).toBeInstanceOf(ValidationError);
  });

  it("report their progress and their log", async () => {
    const heard: (ToolProgress | ToolLog)[] = [];
    const listen = (one: ToolProgress | ToolLog) => heard.push(one);
    const result = await (await counterEnv()).callTool("tell", {}, { onProgress: listen, onLog: listen });
    expect(result.text).toBe("told");
    expect(heard).toEqual([
      { level: "info", data: "beginning" },
      { progress: 1, total: 2, message: "half way" },
    ]);
  });

  it("return their result even if a listener throws", async () => {
    const onLog = () => {
      throw new Error("a bug in the listener");
    };
    expect((await (await counterEnv()).callTool("tell", {}, { onLog })).text).toBe("told");
  });

  it("are stopped at their timeout", async () => {
    const env = await counterEnv();
    stopped.reasons = [];
    const error = await failure(env.callTool("dawdle", {}, { timeoutMs: 300 }));
    expect(error).toBeInstanceOf(ToolTimeoutError);
    expect(error).toMatchObject({
      code: "tool.timeout",
      timeoutMs: 300,
      toolName: "dawdle",
      message: expect.stringContaining("may have run"),
    });
    await vi.waitUntil(() => stopped.reasons.length === 1);
  });

  it("are stopped when the caller aborts, with the signal's reason", async () => {
    const env = await counterEnv();
    stopped.reasons = [];
    const controller = new AbortController();
    const reason = new Error("enough");
    const onLog = () => controller.abort(reason);
    expect(await failure(env.callTool("dawdle", {}, { signal: controller.signal, onLog }))).toBe(reason);
    await vi.waitUntil(() => stopped.reasons.length === 1);
    expect((await env.callTool("add", { n: 1 })).isError).toBe(false);
  });
});

describe("functions, rewards and health", () => {
  it("calls a function at the path and by the method that the environment declares", async () => {
    const env = await counterEnv();
    await env.callTool("add", { n: 4 });
    expect(await env.callFunction("peek")).toBe(4);
    expect(await env.callFunction("echo", { list: [1, 2], text: "a b&c" })).toEqual({ list: [1, 2], text: "a b&c" });
    const { functions } = await env.listFunctions();
    expect(functions.find((one) => one.name === "echo")).toMatchObject({ endpoint: "/own/echo", method: "GET" });
  });

  it("does not fail another call when one caller aborts", async () => {
    const env = await counterEnv();
    await env.initialize();
    const controller = new AbortController();
    const one = failure(env.callFunction("peek", {}, { signal: controller.signal }));
    const other = env.callFunction("peek");
    controller.abort(new Error("enough"));
    expect(await one).toEqual(new Error("enough"));
    expect(await other).toBe(0);
  });

  it("reports an unknown function, and lists the existing ones", async () => {
    expect(await failure((await counterEnv()).callFunction("poke"))).toMatchObject({
      name: "EnvironmentError",
      code: "function.not_found",
      message: "environment 'counter@1.0.0' has no function 'poke'; it has: peek, echo, fail",
    });
  });

  it("keeps a function's error message and code", async () => {
    expect(await failure((await counterEnv()).callFunction("fail"))).toMatchObject({
      name: "EnvironmentError",
      code: "function.failed",
      message: expect.stringContaining("no such thing"),
    });
  });

  it("returns the reward raw and as a score", async () => {
    const env = await counterEnv();
    await env.callTool("add", { n: 4 });
    const raw = await env.callReward({});
    expect(raw).toEqual({ reward: expect.any(Number), components: { high: 1, even: 1 }, weights: { high: 2, even: 1 } });
    expect(await env.score()).toEqual(raw);
  });

  it("returns the health check's whole response, also an unhealthy one", async () => {
    const env = await counterEnv();
    expect(await env.checkHealth()).toEqual({ success: true, data: { status: "healthy" } });
    await env.callTool("add", { n: 99 });
    expect(await env.checkHealth({ deep: true })).toEqual({ success: true, data: { status: "sick" } });
  });
});

describe("tasks and state", () => {
  it("lists all tasks over all pages, or one split", async () => {
    const env = await counterEnv();
    const tasks = await env.tasks();
    expect(tasks).toHaveLength(1_203);
    expect(new Set(tasks.map((task) => task.id)).size).toBe(1_203);
    expect(await env.tasks({ split: "test" })).toHaveLength(601);
  });

  it("resets to a task, and reports an unknown id", async () => {
    const env = await counterEnv();
    expect(await env.reset({ task: "t7", seed: 1 })).toMatchObject({ task: { id: "t7" }, seed: 1, observation: null });
    expect(await env.callFunction("peek")).toBe(7);
    await env.callTool("add", { n: 1 });
    await env.reset();
    expect(await env.callFunction("peek")).toBe(7);
    expect(await failure(env.reset({ task: "none" }))).toMatchObject({ name: "EnvironmentError", code: "task.not_found" });
  });

  it("restores a snapshot", async () => {
    const env = await counterEnv();
    await env.callTool("add", { n: 3 });
    const snapshot = await env.snapshot();
    await env.callTool("add", { n: 3 });
    await env.restore(snapshot);
    expect(await env.callFunction("peek")).toBe(3);
    expect(await failure(env.restore({ not: "a snapshot" }))).toMatchObject({ code: "snapshot.invalid" });
  });

  it("forks independent copies, and each is released on its own", async () => {
    const env = await counterEnv();
    await env.callTool("add", { n: 5 });
    const before = served.host.size;
    const copies = await env.fork(3);
    expect(served.host.size).toBe(before + 3);
    await Promise.all(copies.map((copy, at) => copy.callTool("add", { n: at })));
    expect(await Promise.all(copies.map((copy) => copy.callFunction("peek")))).toEqual([5, 6, 7]);
    expect(await env.callFunction("peek")).toBe(5);
    await Promise.all(copies.map((copy) => copy.release()));
    expect(served.host.size).toBe(before);
    expect(await failure(copies[0]?.callTool("add", { n: 1 }) ?? Promise.resolve())).toMatchObject({ code: "instance.not_found" });
  });

  it.each([0, -1, 1.5, 1_001])("rejects a fork count of %d", async (count) => {
    expect(await failure((await counterEnv()).fork(count))).toBeInstanceOf(ValidationError);
  });
});

describe("opening and releasing in local mode", () => {
  it("is switched on by DUMMY_INSTANCE_IP, and uses a data URL if set", async () => {
    vi.stubEnv("DUMMY_INSTANCE_IP", "http://localhost");
    const env = await Environment.create("counter", { dataUrl: served.url });
    expect(await env.getEnvInfo()).toEqual({
      name: "counter",
      instanceId: "test",
      status: "Running",
      ip: "127.0.0.1",
      createdAt: expect.stringMatching(/^\d{4}-.*Z$/),
      updatedAt: expect.any(String),
    });
    await env.release();
  });

  it("does not end an environment that it did not create", async () => {
    const size = served.host.size;
    await Environment.use("counter", { instanceUrl: served.url }, async (env) => {
      await env.waitForReady();
    });
    expect(served.host.size).toBe(size);
  });

  it("is opened again after a release only by initialize", async () => {
    const env = await counterEnv();
    await env.callTool("add", { n: 1 });
    await env.release();
    await env.release();
    expect(await failure(env.callTool("add", { n: 1 }))).toMatchObject({
      code: "instance.not_found",
      message: expect.stringContaining("initialize()"),
    });
    await env.initialize();
    expect((await env.callTool("add", { n: 1 })).json()).toEqual({ count: 2 });
  });

  it("can be released and opened again without a health check between", async () => {
    const env = await counterEnv({ skipHealthCheck: true });
    await env.initialize();
    await env.release();
    await env.initialize();
    expect((await env.callTool("add", { n: 1 })).isError).toBe(false);
    await env.release();
    expect(await failure(env.callTool("add", { n: 1 }))).toMatchObject({ code: "instance.not_found" });
  });

  it("a released fork stays released", async () => {
    const [copy] = await (await counterEnv()).fork();
    await copy?.release();
    expect(await failure(copy?.initialize() ?? Promise.resolve())).toMatchObject({ message: expect.stringContaining("fork again") });
  });

  it("is released by await using", async () => {
    const root = new Environment("counter", { instanceUrl: served.url });
    const size = served.host.size;
    {
      const [copy] = await root.fork(1);
      await using env = copy as Environment;
      await env.callTool("add", { n: 1 });
      expect(served.host.size).toBe(size + 1);
    }
    expect(served.host.size).toBe(size);
  });

  it("names the address that does not answer", async () => {
    const url = await deadUrl();
    const error = await failure(Environment.create("counter", { instanceUrl: url, healthTimeoutMs: 60 }));
    expect(error).toBeInstanceOf(EnvironmentError);
    expect(error).toMatchObject({ code: "instance.start_timeout", envName: "counter", message: expect.stringContaining(url) });
  });

  it("reports within a second that nothing listens at its address, with the next step", async () => {
    const url = await deadUrl();
    const clock = fakeClock();
    const error = await failure(Environment.create("counter", { instanceUrl: url, clock }));
    expect(error).toMatchObject({
      code: "network.failed",
      message: expect.stringContaining(`nothing listens at ${url}; start it with: aenv run`),
    });
    expect(sum(clock.sleeps)).toBeLessThanOrEqual(1_000);
  });

  it("reports it within a second also on the first call, or when the server stops later", async () => {
    const url = await deadUrl();
    for (const call of [(env: Environment) => env.callTool("add", { n: 1 }), (env: Environment) => env.listFunctions()]) {
      const clock = fakeClock();
      const error = await failure(call(new Environment("counter", { instanceUrl: url, skipHealthCheck: true, clock })));
      expect(error).toMatchObject({ name: "NetworkError", message: expect.stringContaining("start it with: aenv run") });
      expect(sum(clock.sleeps)).toBeLessThanOrEqual(1_000);
    }
  });

  it("waits for a server that is still starting as long as healthTimeoutMs allows", async () => {
    const clock = fakeClock();
    await failure(Environment.create("counter", { instanceUrl: await deadUrl(), clock, healthTimeoutMs: 5_000 }));
    expect(sum(clock.sleeps)).toBeGreaterThan(4_000);
  });

  it.each([
    [401, "access.unauthenticated", "apiKey"],
    [403, "access.denied", "token"],
    [501, "instance.unsupported", "dataPlane: false"],
  ])("treats a %i of the health check as final, and names the next step", async (status, code, next) => {
    await using other = await httpServer((_, response) => sendJson(response, { message: "no" }, status));
    const error = await failure(Environment.create("counter", { instanceUrl: other.url }));
    expect(error).toMatchObject({ code, message: expect.stringContaining(next) });
    expect(String(error)).toContain(other.url);
    expect(other.requests).toHaveLength(1);
  });

  it("stops waiting when the instance does not exist", async () => {
    const error = await failure(Environment.create("counter", { instanceUrl: `${served.url}/env-instance/none` }));
    expect(error).toMatchObject({ code: "instance.not_found", message: expect.stringContaining("'none' not found") });
  });

  it("stops waiting when its own signal or the caller's aborts", async () => {
    await using sick = await httpServer((_, response) => sendJson(response, { success: true, data: { status: "error" } }));
    const own = new AbortController();
    const waiting = failure(Environment.create("counter", { instanceUrl: sick.url, signal: own.signal }));
    const theirs = new AbortController();
    const other = failure(new Environment("counter", { instanceUrl: sick.url }).callTool("add", {}, { signal: theirs.signal }));
    await vi.waitUntil(() => sick.requests.length > 2);
    own.abort(new Error("own"));
    theirs.abort(new Error("theirs"));
    expect(await waiting).toEqual(new Error("own"));
    expect(await other).toEqual(new Error("theirs"));
  });

  it("never sends the platform's key to a sandbox", async () => {
    vi.stubEnv("AENV_API_KEY", "secret");
    await using sandbox = await httpServer((_, response) =>
      sendJson(response, { success: false, code: 404, message: "no", data: null }, 404),
    );
    const env = new Environment("counter", { instanceUrl: sandbox.url, skipHealthCheck: true });
    await failure(env.fork(1));
    await failure(env.callTool("add", { n: 1 }));
    expect(sandbox.requests).toHaveLength(2);
    expect(sandbox.requests.every(({ headers }) => headers.authorization === undefined)).toBe(true);
  });
});

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}

it("needs a name", () => {
  expect(() => new Environment(" ")).toThrow(ValidationError);
});
