import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type FakeClock, fakeClock } from "../../fixtures/fake-clock.ts";
import { type Seen, sendJson } from "../../fixtures/http-server.ts";
import { WirePlatform } from "../../fixtures/wire-platform.ts";
import {
  EnvironmentError,
  NetworkError,
  ToolError,
  ToolServerError,
  UnrecoverableEnvironmentError,
  ValidationError,
} from "../errors/errors.ts";
import { Environment } from "./environment.ts";
import type { EnvironmentOptions } from "./options.ts";

const REF = "weather-demo@1.0.0";

let platform: WirePlatform;
let clock: FakeClock;
beforeEach(async () => {
  platform = await WirePlatform.open();
  clock = fakeClock();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await platform[Symbol.asyncDispose]();
});

function weather(options: EnvironmentOptions = {}, ref = REF): Environment {
  return new Environment(ref, { controlUrl: platform.control.url, dataUrl: platform.data.url, clock, ...options });
}

async function failure(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => null,
    (error: unknown) => error,
  );
}

const calls = (requests: readonly Seen[]) => requests.map(({ method, path }) => `${method} ${path}`);

describe("against the original's services", () => {
  it("creates, waits, checks the health, calls and deletes, as their own client does", async () => {
    platform.statuses = [
      { status: "Pending", ip: "" },
      { status: "Running", ip: "10.244.1.10" },
    ];
    await using env = await Environment.create(REF, { controlUrl: platform.control.url, dataUrl: platform.data.url, clock });
    expect((await env.listTools()).map((tool) => tool.name)).toEqual([`${REF}/get_weather`]);
    expect((await env.callTool(`${REF}/get_weather`, { city: "Beijing" })).json()).toEqual({ city: "Beijing" });
    expect(await env.callFunction("get_weather_func", { city: "Rome" })).toMatchObject({ city: "Rome" });
    expect(await env.callReward({ city: "Beijing" })).toBe(true);
    expect(await env.score({ city: "Beijing" })).toEqual({ reward: 1, components: {} });
    expect(await env.checkHealth()).toMatchObject({ success: true, data: { status: "success" } });
    expect(await env.getEnvInfo()).toEqual({
      name: REF,
      instanceId: "weather-demo-a1b2c0",
      status: "Running",
      ip: "10.244.1.10",
      createdAt: "",
      updatedAt: "",
    });
    await env.release();
    const id = "/env-instance/weather-demo-a1b2c0";
    expect(calls(platform.control.requests)).toEqual(["POST /env-instance", `GET ${id}`, `GET ${id}`, `DELETE ${id}`]);
    expect(platform.sandbox.sessions.size).toBe(0);
  });

  it("sends the body that they expect, with every option", async () => {
    const env = weather({
      datasource: "swebench/x",
      ttl: "1d",
      environmentVariables: { DEBUG: "1", envNAME: "overwritten" },
      arguments: ["--fast"],
      owner: "jun",
      labels: { app: "demo" },
      apiKey: "secret",
    });
    await env.initialize();
    expect(platform.control.requests[0]?.json).toEqual({
      envName: REF,
      datasource: "swebench/x",
      ttl: "86400s",
      environment_variables: { DEBUG: "1", envNAME: "weather-demo", envversion: "1.0.0" },
      arguments: ["--fast"],
      owner: "jun",
      labels: { app: "demo" },
    });
    expect(platform.control.requests.every(({ headers }) => headers.authorization === "Bearer secret")).toBe(true);
    await env.release();
  });

  it("sends the defaults when there are no options, and the key of AENV_API_KEY", async () => {
    vi.stubEnv("AENV_API_KEY", "from-env");
    const env = weather({}, "weather-demo");
    await env.initialize();
    expect(platform.control.requests[0]?.json).toEqual({
      envName: "weather-demo",
      datasource: "",
      ttl: "30m",
      ttlIsFallback: true,
      arguments: [],
    });
    expect(platform.control.requests[0]?.headers.authorization).toBe("Bearer from-env");
    await env.release();
  });

  it.each([true, false])(
    "sends both proxy headers and no key with every data request (skipping the health check: %s)",
    async (skipHealthCheck) => {
      const env = weather({ skipHealthCheck, apiKey: "secret" });
      await env.callTool("get_weather", { city: "Rome" });
      await env.callFunction("get_weather_func", { city: "Rome" });
      await env.checkHealth();
      await env.release();
      expect(calls(platform.data.requests).filter((call) => call === "GET /health")).toHaveLength(skipHealthCheck ? 1 : 2);
      for (const { headers } of platform.data.requests) {
        expect(headers["aenvcore-mcpproxy-url"]).toBe("http://10.244.1.10:8081");
        expect(headers["aenvcore-envinstance-id"]).toBe("weather-demo-a1b2c0");
        expect(headers.authorization).toBeUndefined();
      }
    },
  );

  it("keeps a reward's error message, and never treats the failure as 0", async () => {
    const env = weather();
    expect(await failure(env.score({ bad: 1 }))).toMatchObject({
      name: "EnvironmentError",
      code: "reward.failed",
      message: expect.stringContaining("unexpected keyword argument 'bad'"),
    });
    await env.release();
  });

  it("reports that they do not support tasks, reset, snapshot, restore and fork", async () => {
    const env = weather();
    const asked = [() => env.tasks(), () => env.reset(), () => env.snapshot(), () => env.restore({}), () => env.fork(2)];
    for (const ask of asked) {
      expect(await failure(ask())).toMatchObject({ name: "EnvironmentError", code: "instance.unsupported" });
    }
    await env.release();
  });

  it("explains the empty 200 of their gateway when the proxy header was lost", async () => {
    const env = weather();
    await env.initialize();
    platform.faults.data = (_, response) => {
      response.writeHead(200).end();
      return true;
    };
    for (const ask of [() => env.callTool("get_weather", {}), () => env.listTools(), () => env.callReward(), () => env.checkHealth()]) {
      expect(await failure(ask())).toMatchObject({ name: "EnvironmentError", message: expect.stringContaining("AEnvCore-MCPProxy-URL") });
    }
    await env.release();
  });

  it("stops waiting for health when the gateway answers its own health", async () => {
    platform.faults.data = (_, response) => {
      sendJson(response, { status: "healthy", message: "MCP Gateway is running" });
      return true;
    };
    expect(await failure(weather().initialize())).toMatchObject({ message: expect.stringContaining("AEnvCore-MCPProxy-URL") });
    expect(platform.alive.size).toBe(0);
  });

  it.each([401, 403, 501])("stops waiting for health when the gateway answers %i, and deletes the instance", async (status) => {
    platform.faults.data = (_, response) => {
      sendJson(response, { success: false, code: status, message: "data plane is not supported on this engine", data: null }, status);
      return true;
    };
    expect(await failure(weather().initialize())).toMatchObject({ message: expect.stringContaining("not supported on this engine") });
    expect(platform.data.requests).toHaveLength(1);
    expect(platform.alive.size).toBe(0);
  });

  it("rejects a tool call that their gateway would truncate", async () => {
    const env = weather();
    expect(await failure(env.callTool("get_weather", { city: "x".repeat(1_100_000) }))).toMatchObject({ code: "request.too_large" });
    expect(platform.sandbox.ran).toEqual([]);
    const roomy = weather({ maxRequestBytes: 2_000_000 });
    expect((await roomy.callTool("get_weather", { city: "x".repeat(1_100_000) })).isError).toBe(false);
    await Promise.all([env.release(), roomy.release()]);
  });
});

describe("starting", () => {
  it("creates one instance for concurrent callers", async () => {
    const env = weather();
    await Promise.all([env.initialize(), env.initialize(), env.listTools(), env.callTool("get_weather", { city: "Rome" })]);
    expect(platform.control.count("POST", "/env-instance")).toBe(1);
    await env.release();
  });

  it("does not poll when the create response already reports Running", async () => {
    platform.faults.control = (seen, response) => {
      if (seen.method !== "POST") return false;
      platform.alive.add("quick-1");
      const data = { id: "quick-1", env: null, status: "Running", created_at: "", updated_at: "", ip: "10.244.1.10" };
      sendJson(response, { success: true, code: 0, message: "", data });
      return true;
    };
    const env = weather();
    await env.initialize();
    expect(calls(platform.control.requests)).toEqual(["POST /env-instance"]);
    expect(clock.sleeps).toEqual([]);
    await env.release();
  });

  it("reports an environment that does not exist", async () => {
    const error = await failure(weather({}, "nope@1.0.0").initialize());
    expect(error).toBeInstanceOf(EnvironmentError);
    expect(error).toMatchObject({ code: "environment.not_found", envName: "nope@1.0.0" });
    expect(String(error)).toMatch(/could not initialize environment 'nope@1.0.0'/);
  });

  it.each(["Failed", "Succeeded"])("throws at once when the instance is %s, with the reason, and deletes it", async (status) => {
    platform.statuses = [{ status, ip: "", reason: "ErrImagePull" }];
    expect(await failure(weather().initialize())).toMatchObject({
      code: "instance.start_failed",
      message: expect.stringContaining("ErrImagePull"),
    });
    expect(platform.alive.size).toBe(0);
  });

  it("deletes an instance that never becomes healthy", async () => {
    platform.faults.data = (_, response) => {
      sendJson(response, { error: "Failed to forward request to MCP server", details: "connection refused" }, 502);
      return true;
    };
    expect(await failure(weather({ healthTimeoutMs: 5_000 }).initialize())).toMatchObject({
      code: "instance.start_timeout",
      message: expect.stringContaining("connection refused"),
    });
    expect(platform.alive.size).toBe(0);
    expect(clock.sleeps.slice(0, 3)).toEqual([50, 75, 112.5]);
  });

  it("rejects a ttl that the server would treat as 'forever'", async () => {
    expect(await failure(weather({ ttl: "30 minutes" }).initialize())).toMatchObject({
      code: "request.invalid",
      message: expect.stringContaining("30 minutes"),
    });
    expect(platform.control.requests).toHaveLength(0);
  });

  it("can be tried again after it has failed", async () => {
    const env = weather();
    platform.statuses = [{ status: "Failed", ip: "" }];
    expect(await failure(env.initialize())).toBeInstanceOf(EnvironmentError);
    platform.statuses = [{ status: "Running", ip: "10.244.1.10" }];
    expect((await env.callTool("get_weather", { city: "Rome" })).isError).toBe(false);
    await env.release();
    expect(platform.alive.size).toBe(0);
  });
});

describe("aborting a start", () => {
  it("deletes an instance whose creation is answered after the caller aborted", async () => {
    const controller = new AbortController();
    const answer = Promise.withResolvers<() => void>();
    platform.faults.control = (seen, response) => {
      if (seen.method !== "POST") return false;
      answer.resolve(() => {
        platform.alive.add("late-1");
        const data = { id: "late-1", env: null, status: "Running", created_at: "", updated_at: "", ip: "10.244.1.10" };
        sendJson(response, { success: true, code: 0, message: "", data });
      });
      return true;
    };
    const env = weather();
    const opening = failure(env.initialize({ signal: controller.signal }));
    const finish = await answer.promise;
    controller.abort(new Error("enough"));
    expect(await opening).toEqual(new Error("enough"));
    finish();
    await env.release();
    expect(platform.alive.size).toBe(0);
    expect(platform.control.count("DELETE", "/env-instance/late-1")).toBe(1);
  });

  it("continues for the other callers when one aborts", async () => {
    const controller = new AbortController();
    platform.faults.control = (seen) => {
      if (seen.method === "GET") controller.abort(new Error("enough"));
      return false;
    };
    const env = weather();
    const one = failure(env.initialize({ signal: controller.signal }));
    const other = env.initialize();
    expect(await one).toEqual(new Error("enough"));
    await other;
    expect(platform.alive.size).toBe(1);
    await env.release();
  });

  it("is stopped by a release, which leaves no instance running", async () => {
    platform.statuses = [{ status: "Pending", ip: "" }];
    const env = weather();
    const opening = failure(env.initialize());
    await vi.waitUntil(() => platform.control.requests.length > 2);
    await env.release();
    expect(await opening).toMatchObject({ name: "EnvironmentError", code: "request.cancelled" });
    expect(platform.alive.size).toBe(0);
  });

  it("throws the signal's reason, also when the first use opens the instance", async () => {
    platform.statuses = [{ status: "Pending", ip: "" }];
    const env = weather();
    const controller = new AbortController();
    const calling = failure(env.callTool("get_weather", {}, { signal: controller.signal }));
    await vi.waitUntil(() => platform.control.requests.length > 2);
    const reason = new Error("enough");
    controller.abort(reason);
    expect(await calling).toBe(reason);
    await env.release();
    expect(platform.alive.size).toBe(0);
  });
});

describe("releasing", () => {
  it("deletes once, however often and however early it is called", async () => {
    const env = weather();
    await env.release();
    await env.initialize();
    await Promise.all([env.release(), env.release()]);
    await env.release();
    expect(platform.control.requests.filter(({ method }) => method === "DELETE")).toHaveLength(1);
  });

  it("does not throw when the control plane is gone, and logs a warning", async () => {
    const warnings: unknown[] = [];
    const quiet = () => {};
    const logger = {
      debug: quiet,
      info: quiet,
      error: quiet,
      warn: (message: string, fields?: unknown) => warnings.push([message, fields]),
    };
    const env = weather({ logger, maxRetries: 2 });
    await env.initialize();
    await platform.control.close();
    await env.release();
    expect(warnings).toEqual([[expect.stringContaining("ends by its ttl"), expect.objectContaining({ instance: "weather-demo-a1b2c0" })]]);
  });

  it("also happens when the work throws", async () => {
    const options = { controlUrl: platform.control.url, dataUrl: platform.data.url, clock };
    const work = Environment.use(REF, options, () => Promise.reject(new Error("work failed")));
    expect(await failure(work)).toEqual(new Error("work failed"));
    expect(platform.alive.size).toBe(0);
  });
});

describe("failures during a tool call", () => {
  async function opened(options: EnvironmentOptions = {}): Promise<Environment> {
    const env = weather(options);
    await env.listTools();
    return env;
  }
  const toolCalls = () => platform.data.requests.filter(({ json }) => json?.method === "tools/call").length;

  it.each([
    [502, { error: "Failed to forward request to MCP server", details: "reset" }, "tool.failed"],
    [503, { success: false, error: "draining", errorInfo: { code: "server.draining", retryable: true } }, "server.draining"],
    [500, "boom", "tool.failed"],
  ])("a %i is a ToolServerError, and the call is not sent again", async (status, body, code) => {
    const env = await opened();
    platform.faults.data = (_, response) => {
      sendJson(response, body, status);
      return true;
    };
    const error = await failure(env.callTool("get_weather", { city: "Rome" }));
    expect(error).toBeInstanceOf(ToolServerError);
    expect(error).toMatchObject({ statusCode: status, code, toolName: "get_weather" });
    expect(toolCalls()).toBe(1);
    platform.faults.data = () => false;
    await env.release();
  });

  it("a lost connection is a ToolError that says the tool may have run, and the call is not sent again", async () => {
    const env = await opened();
    platform.faults.data = (seen, response) => {
      if (seen.json?.method !== "tools/call") return false;
      response.destroy();
      return true;
    };
    const error = await failure(env.callTool("get_weather", { city: "Rome" }));
    expect(error).toBeInstanceOf(ToolError);
    expect(error).toMatchObject({
      code: "tool.failed",
      message: expect.stringContaining("may have run"),
      cause: { name: "TransportError" },
    });
    expect(toolCalls()).toBe(1);
    await env.release();
  });

  it("an unreachable gateway is a NetworkError, because the call was never sent", async () => {
    const env = await opened();
    await platform.data.close();
    // A call on a connection that was open when the gateway stopped may have been sent; the next connection is refused.
    await vi.waitFor(async () =>
      expect(await failure(env.checkHealth())).toMatchObject({ message: expect.stringContaining("ECONNREFUSED") }),
    );
    const error = await failure(env.callTool("get_weather", { city: "Rome" }));
    expect(error).toBeInstanceOf(NetworkError);
    expect(error).toMatchObject({ retryable: true, message: expect.stringContaining("never sent") });
    await env.release();
  });

  it("an instance that is gone is an EnvironmentError", async () => {
    const env = await opened();
    platform.faults.data = (seen, response) => {
      if (seen.json?.method === "initialize" || seen.json?.method === "tools/call") {
        const errorInfo = { code: "instance.not_found", retryable: false };
        sendJson(response, { success: false, error: "instance 'x' not found", errorInfo }, 404);
        return true;
      }
      return false;
    };
    expect(await failure(env.callTool("get_weather", {}))).toMatchObject({ name: "EnvironmentError", code: "instance.not_found" });
    await env.release();
  });

  it("opens the breaker after five failures, lets one call through after a pause, and is reset by a release", async () => {
    const env = await opened();
    let isBroken = true;
    platform.faults.data = (seen, response) => {
      if (!isBroken || seen.json?.method !== "tools/call") return false;
      response.destroy();
      return true;
    };
    const call = () => failure(env.callTool("get_weather", { city: "Rome" }));
    for (let at = 0; at < 5; at++) expect(await call()).toMatchObject({ name: "ToolError" });
    const error = await call();
    expect(error).toBeInstanceOf(UnrecoverableEnvironmentError);
    expect(error).toMatchObject({ code: "circuit.open", envName: REF });
    expect(toolCalls()).toBe(5);
    clock.advance(30_000);
    expect(await call()).toMatchObject({ name: "ToolError" });
    expect(await call()).toBeInstanceOf(UnrecoverableEnvironmentError);
    isBroken = false;
    clock.advance(30_000);
    expect(await call()).toBeNull();
    isBroken = true;
    for (let at = 0; at < 5; at++) await call();
    await env.release();
    isBroken = false;
    await env.initialize();
    expect(await call()).toBeNull();
    await env.release();
  });

  it("does not count aborted and invalid calls", async () => {
    const env = await opened();
    for (let at = 0; at < 6; at++) {
      await failure(env.callTool("dawdle", {}, { signal: AbortSignal.abort(new Error("enough")) }));
      await failure(env.callTool("get_weather", { city: "x".repeat(1_100_000) }));
      expect(await failure(env.callTool("x", "no object" as never))).toBeInstanceOf(ValidationError);
    }
    expect((await env.callTool("get_weather", { city: "Rome" })).isError).toBe(false);
    await env.release();
  });

  it("opens a new session when the server has lost the old one", async () => {
    const env = await opened();
    await env.callTool("get_weather", { city: "Rome" });
    platform.sandbox.sessions.clear();
    expect((await env.callTool("get_weather", { city: "Oslo" })).json()).toEqual({ city: "Oslo" });
    expect(platform.sandbox.ran).toHaveLength(2);
    await env.release();
  });
});

describe("failures during other calls", () => {
  it("retries idempotent requests, and sends a function or a reward only once", async () => {
    const env = weather();
    await env.listFunctions();
    const seen: string[] = [];
    platform.faults.data = (request, response) => {
      seen.push(`${request.method} ${request.path}`);
      response.writeHead(503, { "retry-after": "1" }).end();
      return true;
    };
    const quick = { timeoutMs: 2_500 };
    expect(await failure(env.listFunctions(quick))).toMatchObject({ name: "EnvironmentError", code: "network.failed" });
    expect(seen).toEqual(Array(3).fill("GET /functions/list"));
    seen.length = 0;
    await failure(env.callReward({}, quick));
    expect(seen).toEqual(["POST /task/reward"]);
    platform.faults.data = () => false;
    await env.release();
  });

  it("reports a function that takes too long as a timeout", async () => {
    const env = weather();
    await env.callFunction("get_weather_func", { city: "Rome" });
    platform.faults.data = (seen) => seen.path === "/functions/get_weather_func";
    expect(await failure(env.callFunction("get_weather_func", {}, { timeoutMs: 20 }))).toMatchObject({
      name: "NetworkError",
      code: "request.timeout",
      retryable: false,
      message: expect.stringMatching(/call function 'get_weather_func'.*it may have been processed/),
    });
    platform.faults.data = () => false;
    await env.release();
  });
});

it("rejects a function endpoint on another host", async () => {
  const env = weather();
  await env.initialize();
  platform.faults.data = (seen, response) => {
    if (seen.path !== "/functions/list") return false;
    const entry = { name: "lure", endpoint: "@evil.example/", method: "POST" };
    sendJson(response, { success: true, data: { total: 1, functions: [entry] } });
    return true;
  };
  expect(await failure(env.callFunction("lure"))).toBeInstanceOf(ValidationError);
  await env.release();
});

describe("a server without a list of functions", () => {
  it("is called at the original's paths", async () => {
    const env = weather();
    await env.initialize();
    platform.faults.data = (seen, response) => {
      if (seen.path !== "/functions/list") return false;
      response.writeHead(404).end("Not Found");
      return true;
    };
    expect(await env.callFunction("get_weather_func", { city: "Rome" })).toMatchObject({ city: "Rome" });
    expect(await failure(env.callFunction("a/b"))).toMatchObject({ code: "function.not_found" });
    expect(platform.data.requests.at(-1)?.path).toBe("/functions/a%2Fb");
    await env.release();
  });
});

describe("forking on a platform that supports it", () => {
  function forking(records: readonly unknown[]): void {
    platform.faults.control = (seen, response) => {
      if (!seen.path.endsWith("/fork")) return false;
      for (const { id } of records as { id: string }[]) platform.alive.add(id);
      sendJson(response, { success: true, code: 0, message: "", data: records });
      return true;
    };
  }
  const record = (id: string) => ({ id, env: null, status: "Running", created_at: "", updated_at: "", ip: "10.244.1.10" });

  it("returns environments that own their instances", async () => {
    forking([record("f-1"), record("f-2")]);
    const env = weather();
    const copies = await env.fork(2);
    await copies[1]?.callTool("get_weather", { city: "Rome" });
    expect(platform.data.requests.at(-1)?.headers["aenvcore-envinstance-id"]).toBe("f-2");
    await env.release();
    expect([...platform.alive]).toEqual(["f-1", "f-2"]);
    await Promise.all(copies.map((copy) => copy.release()));
    expect(platform.alive.size).toBe(0);
  });

  it("ends all forks when one does not start", async () => {
    forking([record("f-1"), { ...record("f-2"), status: "Pending", ip: "" }]);
    const env = weather();
    await env.initialize();
    platform.statuses = [{ status: "Failed", ip: "" }];
    expect(await failure(env.fork(2))).toMatchObject({ code: "instance.start_failed" });
    await env.release();
    expect(platform.alive.size).toBe(0);
  });
});

it("logs its actions, but no variable, argument or key", async () => {
  const lines: string[] = [];
  const write = (message: string, fields?: unknown) => lines.push(message + JSON.stringify(fields));
  const env = weather({
    logger: { debug: write, info: write, warn: write, error: write },
    apiKey: "s3cret-key",
    environmentVariables: { TOKEN: "s3cret-variable" },
    arguments: ["s3cret-argument"],
  });
  await env.callTool("get_weather", { city: "s3cret-city" });
  await failure(env.callFunction("nope", { x: "s3cret-input" }));
  await env.release();
  expect(lines.length).toBeGreaterThan(2);
  expect(lines.join("\n")).not.toContain("s3cret");
});
