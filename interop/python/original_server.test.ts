import { type Served, serve } from "@aenv/kit";
import { Environment } from "@aenv/sdk";
import { describeNeeding } from "@aenv/testing";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { freeLoopback, ORIGINAL_PORT, type OriginalServer, serveOriginal, useFromPython } from "./original.ts";
import { twin } from "./twin.ts";

describeNeeding("python", "the original Python environment server and AEnv's", () => {
  let original: OriginalServer;
  let ours: Served;
  const ourAddress = freeLoopback();

  beforeAll(async () => {
    original = await serveOriginal();
    ours = await serve(twin, { name: "twin", version: "1.0.0", host: ourAddress, port: ORIGINAL_PORT });
  });

  afterAll(async () => {
    await ours?.close();
    await original?.[Symbol.asyncDispose]();
  });

  afterEach(() => {
    delete process.env.DUMMY_INSTANCE_IP;
  });

  /** The AEnv SDK in local mode, by environment variables. */
  async function withSdk<T>(address: string, use: (env: Environment) => Promise<T>): Promise<T> {
    process.env.DUMMY_INSTANCE_IP = `http://${address}`;
    await using env = new Environment("twin@1.0.0", { skipHealthCheck: true });
    return await use(env);
  }

  it("behave the same with the AEnv SDK in local mode", { timeout: 60_000 }, async () => {
    const visit = (env: Environment) =>
      useTwin(env, [
        ["get_weather", { city: "Beijing" }],
        ["greet", { name: "Ada" }],
        ["forecast", { city: "Rome", days: 3 }],
        ["temperatures", {}],
        ["nothing", {}],
        ["picture", {}],
      ]);
    const theirs = await withSdk(original.address, visit);
    expect(theirs).toMatchObject({
      results: {
        get_weather: { structuredContent: { city: "Beijing", temperature: "20", wind: null } },
        greet: { text: "Hello, Ada!", structuredContent: { result: "Hello, Ada!" } },
        temperatures: { structuredContent: { result: [20, 21, 19] } },
      },
      function: { city: "Rome", temperature: "20" },
      reward: true,
      score: { reward: 0, components: {} },
    });
    expect(await withSdk(ourAddress, visit)).toEqual(theirs);
  });

  it("give the AEnv SDK the same errors of a tool, a function and a reward", { timeout: 60_000 }, async () => {
    for (const address of [original.address, ourAddress]) {
      await withSdk(address, async (env) => {
        expect(await env.callTool("fail", { why: "no wind" })).toMatchObject({ isError: true, text: expect.stringContaining("no wind") });
        expect(await env.callTool("greet", {})).toMatchObject({ isError: true, text: expect.stringContaining("name") });
        await expect(env.callFunction("explode", { why: "boom" })).rejects.toMatchObject({ code: "function.failed" });
        await expect(env.callReward({ wrong: 1 })).rejects.toThrow("could not call the reward of 'twin@1.0.0': ");
        expect((await env.callTool("greet", { name: "Ada" })).text).toBe("Hello, Ada!");
      });
    }
  });

  it("the original rejects a request of more than 4 MiB, and the AEnv SDK reports it and continues", { timeout: 60_000 }, async () => {
    await withSdk(original.address, async (env) => {
      expect((await env.callTool("greet", { name: "Ada" })).text).toBe("Hello, Ada!");
      const name = "a".repeat(5 * 1024 * 1024);
      await expect(env.callTool("greet", { name })).rejects.toMatchObject({ code: "request.too_large" });
      await expect(env.callTool("nowhere", {})).resolves.toMatchObject({ isError: true, text: expect.stringContaining("nowhere") });
      expect((await env.callTool("greet", { name: "Eve" })).text).toBe("Hello, Eve!");
    });
  });

  it("the AEnv SDK without the data plane sends no request to either", { timeout: 60_000 }, async () => {
    for (const address of [original.address, ourAddress]) {
      process.env.DUMMY_INSTANCE_IP = `http://${address}`;
      await using env = await Environment.create("twin@1.0.0", { dataPlane: false });
      expect(await env.getEnvInfo()).toMatchObject({ status: "Running" });
      await expect(env.listTools()).rejects.toMatchObject({ code: "instance.unsupported" });
      await expect(env.presignUrl(80)).rejects.toMatchObject({ code: "instance.unsupported" });
    }
  });

  it("behave the same with the original's client", { timeout: 60_000 }, async () => {
    const [theirs, mine] = await Promise.all(
      [original.address, ourAddress].map(async (address) => alikeOnly((await useFromPython(address, ["shared"])).shared as Report)),
    );
    expect(mine).toEqual(theirs);
  });

  it("answer the same on the trainer API", { timeout: 60_000 }, async () => {
    const json = { "content-type": "application/json" };
    for (const [method, path, body] of [
      ["POST", "/functions/get_weather_func", '{"city":"Rome"}'],
      ["POST", "/functions/explode", '{"why":"boom"}'],
      ["POST", "/task/reward", '{"city":"Beijing"}'],
      ["POST", "/functions/unheard_of", "{}"],
      ["GET", "/functions/get_weather_func", undefined],
      ["GET", "/task/reward", undefined],
      ["POST", "/health", "{}"],
      ["POST", "/functions/list", "{}"],
      ["GET", "/nowhere", undefined],
    ] as const) {
      const [theirs, mine] = await Promise.all(
        [original.url, ours.url].map(async (url) => {
          const response = await fetch(`${url}${path}`, { method, headers: json, ...(body !== undefined && { body }) });
          const text = await response.text();
          const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
          return { status: response.status, body: isJson ? withoutOurs(JSON.parse(text)) : text };
        }),
      );
      expect(mine, `${method} ${path}`).toEqual(theirs);
    }
  });
});

async function useTwin(env: Environment, calls: readonly (readonly [string, Record<string, unknown>])[]) {
  const results: Record<string, object> = {};
  for (const [name, args] of calls) {
    const { content, isError, structuredContent, text } = await env.callTool(name, args);
    results[name] = { content, isError, structuredContent, text };
  }
  const tools = await env.listTools();
  return {
    tools: tools.map(({ name, description, inputSchema }) => ({ name, description, inputs: fieldsOf(inputSchema) })),
    results,
    function: await env.callFunction("get_weather_func", { city: "Rome" }),
    reward: await env.callReward({ city: "Beijing" }),
    score: await env.score({ city: "Rome" }),
  };
}

/** A schema in a normal form. */
function fieldsOf(schema: Record<string, unknown>) {
  const { properties = {}, required = [] } = schema as {
    properties?: Record<string, { type?: string; default?: unknown }>;
    required?: string[];
  };
  const fields = Object.entries(properties).map(([name, { type, default: otherwise }]) => [name, { type, otherwise }]);
  return { fields: Object.fromEntries(fields), required };
}

interface Report {
  readonly tools: readonly { readonly name: string; readonly description: string; readonly inputSchema: Record<string, unknown> }[];
  readonly functions: Record<string, unknown>;
  readonly [part: string]: unknown;
}

/** Error messages may differ; whether there is an error, and its kind, may not. */
function alikeOnly({ tools, functions, ...rest }: Report): object {
  const parts = Object.entries(rest).map(([name, part]) => {
    if (!isRecord(part)) return [name, part];
    if ("raised" in part) return [name, part.raised];
    return [name, part.is_error === true ? "is_error" : part];
  });
  return {
    ...Object.fromEntries(parts),
    tools: tools.map(({ inputSchema, ...tool }) => ({ ...tool, inputs: fieldsOf(inputSchema) })),
    functions: Object.keys(functions),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** AEnv's envelope has more fields than the original's; only the original's fields are compared. */
function withoutOurs(body: unknown): unknown {
  if (!isRecord(body)) return body;
  const { errorInfo: _, ...rest } = body;
  return rest;
}
