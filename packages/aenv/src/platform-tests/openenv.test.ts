import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

type Headers = Readonly<Record<string, string>>;
// biome-ignore lint/suspicious/noExplicitAny: answers of every shape
type Any = any;

let platform: Platform;
let admin: Headers;
let ada: string;
let agent: string;

beforeAll(async () => {
  platform = await startPlatform({ flags: { access: "on", round: "50ms" } });
  admin = await platform.token("root", "admin");
  for (const project of [projects.echo, projects.probe]) {
    const [name, version] = (await publish(platform, project, { headers: admin })).split("@");
    await platform.demand("POST", `/env/${name}/${version}/visibility`, { visibility: "public" }, admin);
  }
  ada = await tokenOf("ada", "trainer");
  agent = await tokenOf("ada", "agent");
});
afterAll(() => platform?.close());

async function tokenOf(owner: string, role: "trainer" | "agent"): Promise<string> {
  return (await platform.token(owner, role)).authorization.slice("Bearer ".length);
}

async function running(): Promise<number> {
  const { items } = (await platform.demand("GET", "/env-instance/list?status=Running", undefined, admin)) as { items: unknown[] };
  return items.length;
}

const untilNoneRuns = () => vi.waitFor(async () => expect(await running()).toBe(0), { timeout: 10_000, interval: 20 });

async function http(
  path: string,
  body?: unknown,
  headers: Headers = { authorization: `Bearer ${ada}` },
): Promise<{ status: number; body: Any }> {
  const response = await fetch(`${platform.dataUrl}/openenv/${path}`, {
    headers,
    ...(body !== undefined && { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() };
}

/** A client of `/ws`, with its token in the path. */
class Client implements AsyncDisposable {
  readonly socket: WebSocket;
  readonly #messages: Any[] = [];
  readonly #readers: ((message: Any) => void)[] = [];
  readonly closed: Promise<number>;

  constructor(path: string, token = ada) {
    this.socket = new WebSocket(`${platform.dataUrl.replace("http", "ws")}/openenv/${token}/${path}`);
    this.closed = new Promise((resolve) => this.socket.addEventListener("close", ({ code }) => resolve(code)));
    this.socket.addEventListener("message", ({ data }) => {
      const message = JSON.parse(String(data));
      const reader = this.#readers.shift();
      if (reader === undefined) this.#messages.push(message);
      else reader(message);
    });
  }

  async send(message: unknown): Promise<void> {
    if (this.socket.readyState === WebSocket.CONNECTING) {
      await new Promise((resolve) => {
        this.socket.addEventListener("open", resolve);
        this.socket.addEventListener("error", resolve);
      });
    }
    this.socket.send(typeof message === "string" ? message : JSON.stringify(message));
  }

  next(): Promise<Any> {
    const message = this.#messages.shift();
    return message === undefined ? new Promise((resolve) => this.#readers.push(resolve)) : Promise.resolve(message);
  }

  async ask(message: unknown): Promise<Any> {
    await this.send(message);
    return this.next();
  }

  step(name: string, args: object = {}): Promise<Any> {
    return this.ask({ type: "step", data: { type: "call_tool", tool_name: name, arguments: args } });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.close();
    await this.closed;
  }
}

describe("an OpenEnv session on a WebSocket", () => {
  it("plays episodes, one after the other, each scored once", async () => {
    await using client = new Client("echo@1.0.0/ws");
    expect(await client.ask({ type: "state" })).toEqual({ type: "state", data: { episode_id: null, step_count: 0, env: "echo@1.0.0" } });
    const { data: first } = await client.ask({
      type: "reset",
      data: { task_id: "be-brief", episode_id: "e1", seed: 3, column: "ignored" },
    });
    expect(first).toMatchObject({
      observation: {
        prompt: "Echo the word 'brevity', in as few calls as you can.",
        messages: [{ role: "system" }, { role: "user" }],
        task_id: "be-brief",
        available_tools: ["echo", "remember", "submit", "say"],
        metadata: { prompt: "Echo the word 'brevity', in as few calls as you can.", task_id: "be-brief" },
      },
      reward: null,
      done: false,
      metadata: { truncated: false },
    });
    expect(Object.keys(first.observation)).not.toContain("tools");
    expect(Object.keys(first.observation)).not.toContain("tool_name");
    const said = await client.step("say", { text: "What now?" });
    expect(said.data.observation.result.data).toBe("Nothing was echoed yet. Use the tool 'echo'.");
    const { data: echoed } = await client.ask({ type: "step", data: { tool_name: "echo", arguments: { text: "brevity" }, metadata: {} } });
    expect(echoed).toEqual({
      observation: {
        tool_name: "echo",
        result: { content: [{ type: "text", text: "brevity" }], structured_content: null, meta: null, data: "brevity", is_error: false },
        error: null,
        metadata: { step_reward: 1 },
      },
      reward: null,
      done: false,
      metadata: { step_reward: 1 },
    });
    expect((await client.step("remember", { name: "a", text: "b" })).data.observation.result).toMatchObject({
      structured_content: { name: "a", text: "b" },
      data: { name: "a", text: "b" },
    });
    expect((await client.step("submit")).data).toMatchObject({
      observation: { tool_name: "submit", result: { data: { reward: 1, done: true } }, error: null },
      reward: 1,
      done: true,
      metadata: { rewards: { total: 1, components: { said_it: 1, brief: 1 } } },
    });
    await untilNoneRuns();
    expect((await client.step("echo", { text: "more" })).data).toMatchObject({
      observation: { result: null, error: { error_type: "execution_error", message: "episode is done" } },
      reward: 1,
      done: true,
    });
    expect((await client.ask({ type: "state" })).data).toEqual({
      episode_id: "e1",
      step_count: 4,
      env: "echo@1.0.0",
      task_id: "be-brief",
      split: "train",
      index: 1,
      done: true,
      reward: 1,
      max_steps: null,
    });
    const { data: again } = await client.ask({ type: "reset" });
    expect(again).toMatchObject({ observation: { task_id: "be-brief" }, reward: null, done: false });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 0, done: false, reward: null });
  });

  it("chooses equal tasks for equal seeds, and tasks by split and index", async () => {
    await using client = new Client("echo/ws");
    const taskOf = async (data: object) => (await client.ask({ type: "reset", data })).data.observation.task_id;
    expect([await taskOf({ seed: 3 }), await taskOf({ seed: 3 }), await taskOf({ seed: 4 })]).toEqual(["be-brief", "be-brief", "greet"]);
    expect(await taskOf({ split: "test", index: 0 })).toBe("recall");
    expect(await taskOf({ index: 1 })).toBe("be-brief");
    expect(await taskOf({ task: { id: "greet" } })).toBe("greet");
    expect(await taskOf({ task: { goal: "tea" } })).toBe("inline");
    expect((await client.ask({ type: "reset", data: { split: "test", index: 9 } })).data).toMatchObject({
      code: "EXECUTION_ERROR",
      message: "there is no task 9 in split 'test': there are 1, counted from 0",
    });
  });

  it("scores when the environment ends the episode, and when the steps are used up", async () => {
    await using client = new Client("echo/ws");
    await client.ask({ type: "reset", data: { task_id: "greet", max_steps: 2 } });
    expect((await client.step("echo", { text: "well" })).data).toMatchObject({ reward: null, done: false });
    expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ reward: 0.8, done: true, metadata: { truncated: true } });
    await client.ask({ type: "reset", data: { task_id: "greet" } });
    for (let at = 0; at < 9; at++) expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ done: false, reward: null });
    expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ reward: 0.8, done: true, metadata: { truncated: false } });
  });

  it("lists tools before a reset without an instance, and begins an episode for a call before a reset", async () => {
    await using client = new Client("echo/ws");
    const { data } = await client.ask({ type: "step", data: { type: "list_tools" } });
    expect(data.observation.tools.map(({ name }: { name: string }) => name)).toEqual(["echo", "remember", "submit"]);
    expect(data.observation.tools[0]).toMatchObject({ description: "Says the text back.", input_schema: { required: ["text"] } });
    expect(await running()).toBe(0);
    expect((await client.step("echo", { text: "hello" })).data.observation.result.data).toBe("hello");
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 1, task_id: "greet" });
  });

  it("reports a failed tool as an observation, with the kind of failure", async () => {
    await using client = new Client("probe/ws");
    const errorOf = async (name: string, args: object = {}) => (await client.step(name, args)).data.observation.error;
    await client.ask({ type: "reset" });
    expect(await errorOf("cont")).toMatchObject({ error_type: "tool_not_found", message: expect.stringContaining("Unknown tool: cont") });
    expect(await errorOf("size", { text: 5 })).toMatchObject({ error_type: "invalid_args" });
    expect(await errorOf("fail")).toEqual({ error_type: "execution_error", message: "told to fail" });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 3 });
  });

  it("reports a lost sandbox as an error without a reward, and the next reset works", async () => {
    await using client = new Client("probe/ws");
    await client.ask({ type: "reset" });
    const crashed = await client.step("crash");
    expect(crashed).toMatchObject({ type: "error", data: { code: "EXECUTION_ERROR", message: expect.stringMatching(/^instance lost:/) } });
    const submitted = await client.step("submit");
    expect(submitted).toMatchObject({
      type: "error",
      data: { code: "EXECUTION_ERROR", message: expect.stringMatching(/^instance lost:/) },
    });
    expect(JSON.stringify([crashed, submitted])).not.toContain('"reward"');
    expect((await client.ask({ type: "reset" })).data).toMatchObject({ done: false });
    expect((await client.step("count")).data.observation.result.data).toBe("1");
  });

  it("stays open after requests that it cannot answer, and answers in order", async () => {
    await using client = new Client("echo/ws");
    const cases: readonly (readonly [unknown, string])[] = [
      ["{", "INVALID_JSON"],
      [{ type: "dance" }, "UNKNOWN_TYPE"],
      [{ type: "validation_open", data: {} }, "UNKNOWN_TYPE"],
      [{ type: "step", data: { type: "dance" } }, "VALIDATION_ERROR"],
      [{ type: "step" }, "VALIDATION_ERROR"],
      [{ type: "step", data: { tool_name: "echo", more: 1 } }, "VALIDATION_ERROR"],
      [{ type: "reset", data: { seed: -1 } }, "VALIDATION_ERROR"],
      [{ type: "reset", data: {}, more: 1 }, "VALIDATION_ERROR"],
      [{ type: "reset", data: { episode_id: "x".repeat(256) } }, "VALIDATION_ERROR"],
      [{ type: "reset", data: { task_id: "nothing" } }, "EXECUTION_ERROR"],
    ];
    for (const [message] of cases) await client.send(message);
    for (const [, code] of cases) expect((await client.next()).data.code).toBe(code);
    const { data } = await client.ask({ type: "step", data: { type: "call_tool", tool_name: 5 } });
    expect(data).toMatchObject({ code: "VALIDATION_ERROR", errors: [{ loc: ["tool_name"], input: 5, msg: expect.any(String) }] });
    expect((await client.ask([])).data.code).toBe("SESSION_ERROR");
    expect(await client.closed).toBe(1000);
  });

  it("ends its instance when it is closed, when the connection is lost, and in the middle of a call", async () => {
    const asked = new Client("echo/ws");
    await asked.ask({ type: "reset" });
    await asked.send({ type: "close" });
    expect(await asked.closed).toBe(1000);
    await untilNoneRuns();
    const waiting = new Client("probe/ws");
    await waiting.ask({ type: "reset" });
    await waiting.send({ type: "step", data: { tool_name: "wait", arguments: { ms: 60_000 } } });
    await vi.waitFor(async () => expect(await running()).toBe(1));
    waiting.socket.close();
    await untilNoneRuns();
  });

  it("is refused with the reason: no token, an agent's token, an unknown environment, too many sessions, an unknown session", async () => {
    for (const token of ["aenv_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAA", agent])
      expect(await new Client("echo/ws", token).closed).toBe(1006);
    const unknown = new Client("nowhere/ws");
    expect((await unknown.next()).data).toMatchObject({ code: "FACTORY_ERROR", factory_name: "nowhere" });
    expect(await unknown.closed).toBe(1000);
    const { token } = await platform.server.access.tokens.create({ owner: "eve", roles: ["trainer"], maxInstances: 1 });
    await using first = new Client("echo/ws", token);
    await first.ask({ type: "state" });
    const second = new Client("echo/ws", token);
    expect((await second.next()).data).toEqual({
      code: "CAPACITY_REACHED",
      message: "Server at capacity: 1/1 sessions active.",
      active_sessions: 1,
      max_sessions: 1,
    });
    const lost = new Client("echo/ws?session_id=none");
    expect((await lost.next()).data.code).toBe("SESSION_ERROR");
  });

  it("is closed with a code when a message is too long or not text", async () => {
    const long = new Client("echo/ws");
    await long.send(`"${"x".repeat(16 * 1024 ** 2)}"`);
    expect(await long.closed).toBe(1009);
    const binary = new Client("echo/ws");
    await binary.ask({ type: "state" });
    binary.socket.send(new Uint8Array(3));
    expect(await binary.closed).toBe(1003);
  });

  it("ends when its connection breaks off without a good-bye", async () => {
    const { hostname, port } = new URL(platform.dataUrl);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /openenv/${ada}/echo/ws HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    const reset = Buffer.from('{"type":"reset"}');
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | reset.length, 0, 0, 0, 0]), reset]));
    await vi.waitFor(async () => expect(await running()).toBe(1), { timeout: 10_000 });
    socket.destroy();
    await untilNoneRuns();
  });
});

describe("OpenEnv's plain HTTP routes", () => {
  it("describe the environment", async () => {
    expect(await http("echo@1.0.0/health")).toEqual({ status: 200, body: { status: "healthy" } });
    expect((await http("echo@1.0.0/metadata/")).body).toMatchObject({ name: "echo", version: "1.0.0", description: expect.any(String) });
    expect((await http("echo/schema")).body).toMatchObject({ action: { title: "CallToolAction" }, observation: {}, state: {} });
    expect((await http("echo/openapi.json")).body).toMatchObject({
      info: { version: "1.0.0" },
      paths: { "/reset": {}, "/step": {}, "/state": {} },
    });
    expect(await http("echo/nothing")).toEqual({ status: 404, body: { detail: "Not Found" } });
    expect((await http("nowhere/health")).status).toBe(404);
  });

  it("play a named episode over several requests, and another one in a single request", async () => {
    expect((await http("echo/reset", "")).body).toMatchObject({ observation: { prompt: expect.any(String) }, done: false });
    expect((await http("echo/step", { action: { tool_name: "echo", arguments: { text: "hi" } } })).body).toMatchObject({
      observation: { result: { data: "hi" } },
    });
    expect((await http("echo/state")).body).toMatchObject({ episode_id: null, step_count: 0 });
    await untilNoneRuns();
    expect((await http("echo/reset", { episode_id: "mine", task_id: "greet" })).status).toBe(200);
    await http("echo/step", { episode_id: "mine", action: { tool_name: "echo", arguments: { text: "hello" } } });
    expect((await http("echo/state?episode_id=mine")).body).toMatchObject({ step_count: 1 });
    const bob = { authorization: `Bearer ${await tokenOf("bob", "trainer")}` };
    expect((await http("echo/step", { episode_id: "mine", action: { type: "submit" } }, bob)).status).toBe(404);
    expect((await http("echo/step", { episode_id: "mine", action: { type: "submit" } })).body).toMatchObject({ reward: 1, done: true });
    expect((await http("echo/step", { action: "echo" })).body).toMatchObject({ detail: [{ loc: ["action"] }] });
    expect((await http("echo/reset", "{")).status).toBe(422);
    await untilNoneRuns();
  });

  it("list the tasks, without what is hidden", async () => {
    expect((await http("echo/list_environments")).body).toEqual(["echo"]);
    expect((await http("echo/Echo/splits")).body).toEqual([
      { name: "train", type: "train" },
      { name: "test", type: "test" },
    ]);
    expect((await http("echo/echo/tasks", { split: "test" })).body).toEqual({
      tasks: [{ id: "recall", split: "test", index: 0, prompt: "Echo the word that is remembered as 'password'." }],
      env_name: "echo",
    });
    expect((await http("echo/echo/num_tasks", { split: "train" })).body).toEqual({ num_tasks: 2 });
    expect((await http("echo/echo/task", { split: "train", index: 1 })).body.task.id).toBe("be-brief");
    expect((await http("echo/echo/task", { split: "train", index: 2 })).status).toBe(400);
    expect((await http("echo/echo/task_range", { split: "train", start: 1 })).body.tasks).toHaveLength(1);
    expect((await http("echo/probe/splits")).status).toBe(404);
  });

  it("take the token as a bearer, as the password of the URL or as a part of the path, and only a trainer's", async () => {
    const basic = (text: string) => ({ authorization: `Basic ${Buffer.from(text).toString("base64")}` });
    for (const headers of [basic(`token:${ada}`), basic(`${ada}:`), basic(ada)])
      expect((await http("echo/health", undefined, headers)).status).toBe(200);
    expect((await http(`${ada}/echo/health`, undefined, {})).status).toBe(200);
    expect((await http("echo/health", undefined, {})).status).toBe(401);
    for (const path of ["health", "metadata", "schema", "state", "list_environments", "echo/splits"])
      expect([path, (await http(`echo/${path}`, undefined, { authorization: `Bearer ${agent}` })).status]).toEqual([path, 403]);
    for (const path of ["reset", "step", "mcp"])
      expect([path, (await http(`echo/${path}`, {}, { authorization: `Bearer ${agent}` })).status]).toEqual([path, 403]);
  });
});

describe("OpenEnv's MCP route", () => {
  const rpc = async (method: string, params: object = {}) => (await http("echo/mcp", { jsonrpc: "2.0", id: 1, method, params })).body;

  it("answers every wrong request with status 200 and an error of JSON-RPC", async () => {
    for (const [body, code] of [
      ["{}", -32600],
      ["[]", -32600],
      ["{", -32700],
      [JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize" }), -32601],
    ] as const)
      expect(await http("echo/mcp", body)).toMatchObject({ status: 200, body: { jsonrpc: "2.0", error: { code } } });
    expect(await rpc("tools/call")).toMatchObject({ error: { code: -32602 } });
    expect(await rpc("tools/list", { session_id: "gone" })).toMatchObject({
      id: 1,
      error: { code: -32602, message: "Unknown session_id: gone" },
    });
  });

  it("shares a session with a WebSocket", async () => {
    const { session_id: id } = (await rpc("openenv/session/create")).result;
    await using client = new Client(`echo/ws?session_id=${id}`);
    await client.ask({ type: "reset", data: { task_id: "greet" } });
    expect((await rpc("tools/list", { session_id: id })).result.tools).toHaveLength(4);
    expect((await rpc("tools/call", { name: "echo", arguments: { text: "hello" }, session_id: id })).result).toMatchObject({
      data: "hello",
    });
    expect((await rpc("tools/call", { name: "ech", session_id: id })).error).toMatchObject({ code: -32603 });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 2 });
    expect(
      (await client.ask({ type: "mcp", data: { jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "submit" } } })).data,
    ).toMatchObject({
      id: 7,
      result: { data: { reward: 1, done: true } },
    });
    expect((await rpc("openenv/session/close", { session_id: id })).error).toMatchObject({ code: -32600 });
    expect(await new Client(`echo/ws?session_id=${id}`).next()).toMatchObject({ data: { code: "SESSION_ERROR" } });
    client.socket.close();
    await client.closed;
    await vi.waitFor(async () =>
      expect(await rpc("openenv/session/close", { session_id: id })).toMatchObject({ result: { closed: true } }),
    );
  });

  it("makes an episode for a single call", async () => {
    expect((await rpc("tools/call", { name: "echo", arguments: { text: "hi" } })).result).toMatchObject({ data: "hi" });
    await untilNoneRuns();
  });

  it("is a WebSocket too", async () => {
    await using client = new Client("echo/mcp");
    expect(
      await client.ask({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hi" } } }),
    ).toMatchObject({ result: { data: "hi" } });
    expect(await client.ask("{")).toMatchObject({ error: { code: -32700 } });
  });
});

describe("a server that is closed", () => {
  it("ends OpenEnv sessions and their instances, and says good-bye to their clients", async () => {
    await using own = await startPlatform();
    const ref = await publish(own, projects.echo);
    const socket = new WebSocket(`${own.dataUrl.replace("http", "ws")}/openenv/${ref}/ws`);
    const closed = new Promise<number>((resolve) => socket.addEventListener("close", ({ code }) => resolve(code)));
    await new Promise((resolve) => socket.addEventListener("open", resolve));
    const answered = new Promise((resolve) => socket.addEventListener("message", resolve));
    socket.send('{"type":"reset"}');
    await answered;
    await own.close();
    expect(await closed).toBe(1001);
  });
});
