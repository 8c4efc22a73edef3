import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, describe, expect, it } from "vitest";
import { z } from "zod";
import { defineEnvironment, type EnvironmentDefinition } from "../definition/definition.ts";
import { registerHealth, takeRegistered } from "../definition/registry.ts";
import { type Served, type ServeOptions, serve } from "./serve.ts";

const open: Served[] = [];

async function start(definition: EnvironmentDefinition<never> | object, options: ServeOptions = {}): Promise<Served> {
  const served = await serve(definition as EnvironmentDefinition, {
    name: "shop",
    version: "1.0.0",
    port: 0,
    writeLog: () => {},
    ...options,
  });
  open.push(served);
  return served;
}

afterEach(async () => {
  for (const served of open.splice(0)) await served.close();
});

interface Answer {
  status: number;
  body: unknown;
}

async function ask(served: Served, path: string, init: RequestInit = {}): Promise<Answer> {
  const response = await fetch(`${served.url}${path}`, init);
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: response.status, body: isJson ? JSON.parse(text) : text };
}

function post(served: Served, path: string, body: unknown = {}): Promise<Answer> {
  return ask(served, path, { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) });
}

async function callTool(served: Served, name: string, args: object = {}, prefix = ""): Promise<string> {
  const response = await fetch(`${served.url}${prefix}/mcp`, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } }),
  });
  const text = await response.text();
  const message = text.startsWith("{") ? text : (text.match(/^data: (.*)$/m)?.[1] ?? "");
  return JSON.parse(message).result.content[0].text;
}

/** A promise and the function that resolves it, to keep a tool running for exactly as long as the test needs. */
function gate(): { promise: Promise<string>; open: (value: string) => void } {
  let open: (value: string) => void = () => {};
  const promise = new Promise<string>((resolve) => {
    open = resolve;
  });
  return { promise, open };
}

const shop = defineEnvironment({
  setup: ({ variables }) => ({ sold: 0, variables }),
  tasks: () => Array.from({ length: 5 }, (_, n) => ({ id: `t${n}`, split: n < 3 ? "train" : "test" })),
  tools: [{ name: "sell", input: z.object({ n: z.number() }), run: ({ n }, { state }) => (state.sold += n) }],
  rewards: [{ name: "sold", input: z.object({ goal: z.number() }), score: ({ state, input }) => state.sold >= input.goal }],
  functions: [
    { name: "peek", run: (_, { state }) => state.sold },
    { name: "fail", run: () => Promise.reject(new Error("out of paper")) },
    { name: "odd", run: () => 10n },
    {
      name: "search",
      endpoint: "/catalogue/search",
      method: "GET",
      input: z.object({ q: z.string(), n: z.number().default(1), tags: z.array(z.string()).optional() }),
      run: (input) => input,
    },
  ],
});

describe("the trainer API", () => {
  it("answers functions and rewards in the original's envelope", async () => {
    const served = await start(shop);
    expect(await post(served, "/functions/peek")).toEqual({ status: 200, body: { success: true, data: 0 } });
    expect(await post(served, "/functions/peek", "")).toEqual({ status: 200, body: { success: true, data: 0 } });
    expect(await post(served, "/task/reward", { goal: 0 })).toEqual({ status: 200, body: { success: true, data: true } });
    expect(await post(served, "/functions/odd")).toEqual({ status: 200, body: { success: true, data: "10" } });
  });

  it("answers 500 with the message for every failure in a function or a reward", async () => {
    const served = await start(shop);
    expect(await post(served, "/functions/fail")).toMatchObject({ status: 500, body: { success: false, error: "out of paper" } });
    expect(await post(served, "/task/reward", { bad: 1 })).toMatchObject({
      status: 500,
      body: { success: false, error: expect.stringContaining("goal"), errorInfo: { code: "request.invalid", retryable: false } },
    });
  });

  // Before: 500, and 100,000 levels were given to the code of the environment.
  it("answers 400 to a body of a function or a reward that is no JSON object, or is nested too deeply", async () => {
    const served = await start(shop);
    const deep = `{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`;
    for (const path of ["/functions/peek", "/task/reward"])
      for (const [body, problem] of [
        ["{oops", "not valid JSON"],
        ["[1]", "not an array"],
        ["null", "not null"],
        [deep, "nested deeper than 200 levels"],
      ] as const)
        expect(await post(served, path, body)).toMatchObject({
          status: 400,
          body: { success: false, error: expect.stringContaining(problem), errorInfo: { code: "request.invalid", retryable: false } },
        });
  });

  it("serves custom endpoints and methods, and parses a query by the schema", async () => {
    const served = await start(shop);
    expect(await ask(served, `/catalogue/search?q=12&n=3&tags=${encodeURIComponent('["a"]')}`)).toEqual({
      status: 200,
      body: { success: true, data: { q: "12", n: 3, tags: ["a"] } },
    });
    expect((await ask(served, "/functions/search")).status).toBe(404);
    expect((await post(served, "/catalogue/search")).status).toBe(405);
  });

  it("answers 404 and 405 as text, as the original does", async () => {
    const served = await start(shop);
    expect(await ask(served, "/nowhere")).toEqual({ status: 404, body: "Not Found" });
    expect(await ask(served, "/task/reward")).toEqual({ status: 405, body: "Method Not Allowed" });
    expect(await post(served, "/health")).toEqual({ status: 405, body: "Method Not Allowed" });
  });

  it("pages tasks by split, and refuses an invalid offset", async () => {
    const served = await start(shop);
    expect(await ask(served, "/task/list?offset=1&limit=1&split=train")).toMatchObject({
      body: { data: { items: [{ id: "t1" }], total: 3 } },
    });
    expect(await ask(served, "/task/list?offset=-1")).toMatchObject({
      status: 400,
      body: { error: "offset is '-1'; it must be a non-negative integer" },
    });
  });

  it("resets, snapshots and restores", async () => {
    const served = await start(shop);
    await callTool(served, "sell", { n: 2 });
    const snapshot = ((await post(served, "/state/snapshot")).body as { data: unknown }).data;
    expect(await post(served, "/task/reset", { task: "t1", seed: 5 })).toMatchObject({
      body: { data: { task: { id: "t1" }, seed: 5, observation: null } },
    });
    expect(await callTool(served, "sell", { n: 0 })).toBe("0");
    await post(served, "/state/restore", { snapshot });
    expect(await callTool(served, "sell", { n: 0 })).toBe("2");
    expect(await post(served, "/state/restore", { snapshot: { environment: "shop@1.0.0" } })).toMatchObject({ status: 400 });
    expect(await post(served, "/task/reset", { tsk: "t1" })).toMatchObject({
      status: 400,
      body: { error: "Invalid request parameters: unknown field 'tsk'; did you mean 'task'?" },
    });
    expect(await post(served, "/task/reset", { seed: "x" })).toMatchObject({
      status: 400,
      body: { error: "Invalid request parameters: seed must be a number" },
    });
  });
});

describe("health", () => {
  it("is the original's report by default", async () => {
    const served = await start(shop);
    expect(await ask(served, "/health")).toMatchObject({
      status: 200,
      body: { success: true, data: { status: "success", message: "MCP server is healthy", details: { tool_count: 1 }, last_active: 0 } },
    });
  });

  it("is the environment's own report if it defines one, with 503 when it is unhealthy", async () => {
    let status = "healthy";
    const served = await start({ health: () => ({ status, disk: 3 }) });
    expect(await ask(served, "/health")).toEqual({ status: 200, body: { success: true, data: { status: "healthy", disk: 3 } } });
    status = "unhealthy";
    expect(await ask(served, "/health")).toEqual({ status: 503, body: { success: true, data: { status: "unhealthy", disk: 3 } } });
  });

  it("answers at its own path too, and still at /health", async () => {
    registerHealth({ name: "pulse", description: "Feels it.", endpoint: "/pulse", method: "POST" }, () => ({ status: "healthy", bpm: 60 }));
    const served = await start(takeRegistered() as object);
    const healthy = { status: 200, body: { success: true, data: { status: "healthy", bpm: 60 } } };
    expect(await post(served, "/pulse")).toEqual(healthy);
    expect(await ask(served, "/health")).toEqual(healthy);
    const listed = (await ask(served, "/functions/list")).body as { data: { health: object[] } };
    expect(listed.data.health).toMatchObject([{ name: "pulse", description: "Feels it.", endpoint: "/pulse", method: "POST" }]);
    await expect(start({ health: () => ({ status: "healthy" }), healthAt: { endpoint: "/mcp" } })).rejects.toThrow(
      /is reserved for the platform/,
    );
  });

  it("is a failure if the check throws", async () => {
    const served = await start({ health: () => Promise.reject(new Error("no pulse")) });
    expect(await ask(served, "/health")).toMatchObject({ status: 500, body: { success: false, error: "no pulse" } });
  });
});

describe("many instances in one process", () => {
  it("are created, found, forked and deleted with the control API's envelope", async () => {
    const served = await start(shop);
    const created = await post(served, "/env-instance", { envName: "shop@1.0.0", id: "a", task: "t0", environment_variables: { X: "1" } });
    expect(created).toMatchObject({
      status: 200,
      body: { success: true, code: 0, message: "", data: { id: "a", status: "Running", env: null } },
    });
    expect(await callTool(served, "sell", { n: 3 }, "/env-instance/a")).toBe("3");
    expect(await callTool(served, "sell", { n: 1 })).toBe("1");

    const forked = (await post(served, "/env-instance/a/fork", { count: 2 })).body as { data: { id: string }[] };
    expect(forked.data).toHaveLength(2);
    expect(await callTool(served, "sell", { n: 1 }, `/env-instance/${forked.data[0]?.id}`)).toBe("4");
    expect(await post(served, "/env-instance/a/functions/peek")).toMatchObject({ body: { data: 3 } });

    const all = (await ask(served, "/env-instance/list")).body as { data: { items: object[] } };
    expect(all.data.items).toHaveLength(4);
    expect(((await ask(served, "/env-instance/*/list")).body as { data: object[] }).data).toHaveLength(4);
    expect(await ask(served, "/env-instance/a")).toMatchObject({ body: { data: { id: "a" } } });
    expect(await ask(served, "/env-instance/a", { method: "DELETE" })).toMatchObject({
      body: { success: true, data: "Deleted successfully" },
    });
    for (const gone of ["/env-instance/a", "/env-instance/a/health"]) expect((await ask(served, gone)).status).toBe(404);
  });

  it("are deleted if their client disconnected during setup", async () => {
    const { promise: isReady, resolve: go } = Promise.withResolvers<void>();
    let begun = 0;
    let ended = 0;
    const setup = () => {
      begun++;
      return isReady;
    };
    const served = await start(defineEnvironment({ setup, teardown: () => void ended++, tools: [] }), { first: null });
    const leaving = new AbortController();
    const creating = ask(served, "/env-instance", { method: "POST", body: "{}", signal: leaving.signal });
    await expect.poll(() => begun).toBe(1);
    leaving.abort();
    await expect(creating).rejects.toThrow();
    const staying = post(served, "/env-instance", { id: "a" });
    await expect.poll(() => begun).toBe(2);
    go();
    expect((await staying).status).toBe(200);
    await expect.poll(() => [served.host.size, ended]).toEqual([1, 1]);
  });

  it("refuse invalid requests with a clear error", async () => {
    const served = await start(shop);
    expect(await post(served, "/env-instance", { id: "Not Valid" })).toMatchObject({
      status: 400,
      body: { success: false, code: 400, data: null },
    });
    expect(await post(served, "/env-instance", { envName: "other@1" })).toMatchObject({
      status: 404,
      body: { message: expect.stringContaining("this process serves 'shop@1.0.0'"), error: { code: "environment.not_found" } },
    });
    expect(await post(served, "/env-instance", { task: "zz" })).toMatchObject({ status: 404, body: { error: { code: "task.not_found" } } });
    expect(await post(served, "/env-instance/default/fork", { count: 0 })).toMatchObject({ status: 400 });
    expect((await ask(served, "/env-instance/%E0%A4%A/mcp")).status).toBe(404);
    expect((await ask(served, "/env-instance/default", { method: "PUT" })).status).toBe(405);
  });

  it("may start without a first one", async () => {
    const served = await start(shop, { first: null });
    expect((await ask(served, "/health")).status).toBe(404);
    await post(served, "/env-instance", { id: "a" });
    expect((await ask(served, "/env-instance/a/health")).status).toBe(200);
  });
});

describe("a server on loopback", () => {
  function statusFor(served: Served, headers: Record<string, string>): Promise<number> {
    return new Promise((resolve, reject) => {
      const request = httpRequest(`${served.url}/health`, { headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      });
      request.on("error", reject).end();
    });
  }

  it("refuses requests with another Host or Origin", async () => {
    const served = await start(shop);
    expect(await statusFor(served, { host: "evil.example" })).toBe(403);
    expect(await statusFor(served, { host: "127.0.0.1.evil.example" })).toBe(403);
    expect(await statusFor(served, { origin: "https://evil.example" })).toBe(403);
    expect(await statusFor(served, { origin: "null" })).toBe(403);
    for (const host of ["localhost:1234", "127.0.0.1", "127.1.2.3:80", "[::1]:9"]) expect(await statusFor(served, { host })).toBe(200);
    expect(await statusFor(served, { origin: "http://localhost:5173" })).toBe(200);
  });

  it("accepts the host names in allowedHosts", async () => {
    const served = await start(shop, { allowedHosts: ["dev.example"] });
    expect(await statusFor(served, { host: "dev.example:8081", origin: "https://dev.example" })).toBe(200);
  });
});

describe("a body that is too large", () => {
  it("is refused with 413, declared or not, and the server keeps running", async () => {
    const served = await start(shop, { maxBodyBytes: 1_000 });
    const large = JSON.stringify({ text: "x".repeat(5_000) });
    expect(await post(served, "/functions/peek", large)).toMatchObject({ status: 413, body: { errorInfo: { code: "request.too_large" } } });
    const stream = new ReadableStream({
      pull(controller) {
        controller.enqueue(new TextEncoder().encode("x".repeat(600)));
      },
    });
    const endless = fetch(`${served.url}/functions/peek`, { method: "POST", body: stream, duplex: "half" } as RequestInit);
    expect((await endless).status).toBe(413);
    const create = await fetch(`${served.url}/env-instance`, { method: "POST", body: large });
    expect([create.status, create.headers.get("connection")]).toEqual([413, "close"]);
    expect((await ask(served, "/health")).status).toBe(200);
  });
});

describe("closing", () => {
  it("lets running calls finish and refuses new ones", async () => {
    const entered = gate();
    const leave = gate();
    const served = await start({
      tools: [
        {
          name: "slow",
          run: () => {
            entered.open("in");
            return leave.promise;
          },
        },
      ],
    });
    const answer = callTool(served, "slow");
    await entered.promise;
    const closed = served.close();
    await expect(fetch(`${served.url}/health`)).rejects.toThrow();
    leave.open("done at last");
    expect(await answer).toBe("done at last");
    await closed;
  });

  it("aborts calls that do not finish within the grace period", async () => {
    const entered = gate();
    const served = await start(
      {
        tools: [
          {
            name: "stuck",
            run: () => {
              entered.open("in");
              return new Promise(() => {});
            },
          },
        ],
      },
      { graceMs: 10 },
    );
    const answer = callTool(served, "stuck");
    await entered.promise;
    await served.close();
    expect(await answer).toBe("the server is shutting down");
  });

  it("is idempotent", async () => {
    const served = await start(shop);
    await Promise.all([served.close(), served.close()]);
  });
});

describe("a listening server", () => {
  it("serves the environment, and is closed in the same way", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const served = await start(shop, { server });
    expect(served.port).toBe((server.address() as AddressInfo).port);
    expect(await callTool(served, "sell", { n: 2 })).toBe("2");
    await served.close();
    expect(server.listening).toBe(false);
  });
});

describe("garbage", () => {
  it("on the wire gets a protocol error or a closed connection, and the server keeps running", async () => {
    const served = await start(shop);
    for (const garbage of [
      "\x00\x01\x02\r\n\r\n",
      "GET /\r\n\r\n",
      `POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n`,
    ]) {
      await new Promise<void>((resolve) => {
        const socket = connect(served.port, "127.0.0.1", () => socket.end(garbage));
        socket
          .resume()
          .on("close", () => resolve())
          .on("error", () => resolve());
      });
    }
    expect((await ask(served, "/health")).status).toBe(200);
  });

  it("on an occupied port is an error that names it", async () => {
    const served = await start(shop);
    await expect(serve(shop as EnvironmentDefinition, { port: served.port })).rejects.toThrow(
      new RegExp(`cannot listen on 127.0.0.1:${served.port}: another process listens there already`),
    );
  });
});

describe("a client that disconnects", () => {
  it.each([
    ["create", "/env-instance", { id: "second" }],
    ["reset", "/task/reset", {}],
    ["restore", "/state/restore", { snapshot: { environment: "shop@1.0.0", format: "custom", data: 1 } }],
  ])("during a %s makes the setup's signal fire", async (_, path, body) => {
    const entered = Promise.withResolvers<AbortSignal>();
    const hang = ({ signal }: { signal: AbortSignal }) => {
      entered.resolve(signal);
      return new Promise(() => {});
    };
    let isFirst = true;
    const setup = (context: { signal: AbortSignal }) => {
      if (!isFirst) return hang(context);
      isFirst = false;
      return 1;
    };
    const served = await start({ setup, snapshot: () => 1, restore: (_: unknown, context: { signal: AbortSignal }) => hang(context) });
    const client = new AbortController();
    const asking = ask(served, path, { method: "POST", body: JSON.stringify(body), signal: client.signal }).catch(() => {});
    const signal = await entered.promise;
    const fired = new Promise((resolve) => signal.addEventListener("abort", resolve));
    client.abort();
    await fired;
    await asking;
    expect(served.host.list()).toHaveLength(1);
  });
});

describe("a value without a JSON form", () => {
  const odd = { cart: { items: [0, 1, { when: new Date(Number.NaN) }] } };
  const problem = (what: string) => `${what} cannot be written as JSON: cart.items[2].when is an invalid Date`;

  it.each([
    ["function", "function.failed", "the result of function 'peek'", (served: Served) => post(served, "/functions/peek")],
    ["reward", "reward.failed", "the result of reward 'score'", (served: Served) => post(served, "/task/reward")],
    ["snapshot", "snapshot.unsupported", "the result of snapshot", (served: Served) => post(served, "/state/snapshot")],
    ["task", "environment.invalid", "task 'a'", (served: Served) => ask(served, "/task/list")],
    ["health check", "health.failed", "the result of the health check", (served: Served) => ask(served, "/health")],
    ["observation", "instance.setup_failed", "the result of observe of 'shop'", (served: Served) => post(served, "/task/reset")],
  ])("is refused in a %s, with its path", async (_, code, what, call) => {
    const served = await start({
      observe: () => odd,
      snapshot: () => odd,
      tasks: () => [{ id: "a", ...odd }],
      health: () => ({ status: "healthy", ...odd }),
      tools: [{ name: "peek", run: () => odd }],
      functions: [{ name: "peek", run: () => odd }],
      rewards: [{ name: "score", score: () => odd }],
    });
    expect((await call(served)).body).toMatchObject({ success: false, error: problem(what), errorInfo: { code } });
    expect(await callTool(served, "peek")).toBe(problem("the tool's result"));
  });

  it("is no value that has a documented conversion", async () => {
    const form = { when: new Date(0), stock: new Map([["chair", new Set([1])]]), big: 5n };
    const plain = { when: "1970-01-01T00:00:00.000Z", stock: { chair: [1] }, big: "5" };
    let given: unknown;
    const served = await start({
      setup: ({ task }: { task: unknown }) => {
        given = task;
      },
      observe: () => form,
      snapshot: () => form,
      tasks: () => [{ id: "a", ...form }],
      health: () => ({ status: "healthy", ...form }),
      functions: [{ name: "peek", run: () => form }],
      rewards: [{ name: "score", score: () => ({ reward: 1, ...form }) }],
    });
    expect((await post(served, "/functions/peek")).body).toEqual({ success: true, data: plain });
    expect((await post(served, "/task/reward")).body).toEqual({ success: true, data: { reward: 1, ...plain } });
    expect((await post(served, "/state/snapshot")).body).toMatchObject({ data: { data: plain } });
    expect((await ask(served, "/task/list")).body).toEqual({ success: true, data: { items: [{ id: "a", ...plain }], total: 1 } });
    expect((await ask(served, "/health")).body).toEqual({ success: true, data: { status: "healthy", ...plain } });
    expect((await post(served, "/task/reset", { task: "a" })).body).toMatchObject({
      data: { task: { id: "a", ...plain }, observation: plain },
    });
    // The environment's own code gets the task as its author wrote it.
    expect(given).toEqual({ id: "a", ...form });
  });
});
