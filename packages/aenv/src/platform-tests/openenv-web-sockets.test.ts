import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { OpenEnvClient, startOpenEnv } from "./fixtures/openenv.ts";
import { projects, publish, startPlatform } from "./platform.ts";

let openenv: Awaited<ReturnType<typeof startOpenEnv>>;
beforeAll(async () => {
  openenv = await startOpenEnv();
});
afterAll(() => openenv?.close());

const clientOf = (path: string, token = openenv.ada) => new OpenEnvClient(openenv.platform, path, token);

describe("an OpenEnv session on a WebSocket", () => {
  it("gives the reward the arguments of the reset, and none of those that the agent submits", async () => {
    await using client = clientOf("echo@1.0.0/ws");
    const rewardWith = async (reward_args: object | null) => {
      await client.ask({ type: "reset", data: { task_id: "be-brief", reward_args } });
      for (const text of ["brevity", "more"]) await client.step("echo", { text });
      return (await client.step("submit", { calls: 2 })).data.reward;
    };
    expect([await rewardWith(null), await rewardWith({ calls: 2 })]).toEqual([0.8, 1]);
  });

  it("ends with the next message when its token was revoked, and with it its instance", async () => {
    const { token, row } = await openenv.platform.server.access.tokens.create({ owner: "ada", roles: ["trainer"] });
    await using client = clientOf("echo@1.0.0/ws", token);
    await client.ask({ type: "reset", data: { task_id: "greet" } });
    await openenv.platform.server.access.tokens.revoke(row.id);
    expect(await client.ask({ type: "state" })).toMatchObject({
      type: "error",
      data: { code: "SESSION_ERROR", message: expect.stringContaining("was revoked or has expired") },
    });
    await openenv.untilNoneRuns();
  });

  it("plays episodes, one after the other, each scored once", async () => {
    await using client = clientOf("echo@1.0.0/ws");
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
    await openenv.untilNoneRuns();
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
    await using client = clientOf("echo/ws");
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
    await using client = clientOf("echo/ws");
    await client.ask({ type: "reset", data: { task_id: "greet", max_steps: 2 } });
    expect((await client.step("echo", { text: "well" })).data).toMatchObject({ reward: null, done: false });
    expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ reward: 0.8, done: true, metadata: { truncated: true } });
    await client.ask({ type: "reset", data: { task_id: "greet" } });
    for (let at = 0; at < 9; at++) expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ done: false, reward: null });
    expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ reward: 0.8, done: true, metadata: { truncated: false } });
  });

  it("lists tools before a reset without an instance, and begins an episode for a call before a reset", async () => {
    await using client = clientOf("echo/ws");
    const { data } = await client.ask({ type: "step", data: { type: "list_tools" } });
    expect(data.observation.tools.map(({ name }: { name: string }) => name)).toEqual(["echo", "remember", "submit"]);
    expect(data.observation.tools[0]).toMatchObject({ description: "Says the text back.", input_schema: { required: ["text"] } });
    expect(await openenv.running()).toBe(0);
    expect((await client.step("echo", { text: "hello" })).data.observation.result.data).toBe("hello");
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 1, task_id: "greet" });
  });

  it("reports a failed tool as an observation, with the kind of failure", async () => {
    await using client = clientOf("probe/ws");
    const errorOf = async (name: string, args: object = {}) => (await client.step(name, args)).data.observation.error;
    await client.ask({ type: "reset" });
    expect(await errorOf("cont")).toMatchObject({ error_type: "tool_not_found", message: expect.stringContaining("Unknown tool: cont") });
    expect(await errorOf("size", { text: 5 })).toMatchObject({ error_type: "invalid_args" });
    expect(await errorOf("fail")).toEqual({ error_type: "execution_error", message: "told to fail" });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 3 });
  });

  it("reports a lost sandbox as an error without a reward, and the next reset works", async () => {
    await using client = clientOf("probe/ws");
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
    await using client = clientOf("echo/ws");
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
    const asked = clientOf("echo/ws");
    await asked.ask({ type: "reset" });
    await asked.send({ type: "close" });
    expect(await asked.closed).toBe(1000);
    await openenv.untilNoneRuns();
    const waiting = clientOf("probe/ws");
    await waiting.ask({ type: "reset" });
    await waiting.send({ type: "step", data: { tool_name: "wait", arguments: { ms: 60_000 } } });
    await vi.waitFor(async () => expect(await openenv.running()).toBe(1));
    waiting.socket.close();
    await openenv.untilNoneRuns();
  });

  it("is refused with the reason: no token, an agent's token, an unknown environment, too many sessions, an unknown session", async () => {
    for (const token of ["aenv_000000000000_AAAAAAAAAAAAAAAAAAAAAAAAAAA", openenv.agent])
      expect(await clientOf("echo/ws", token).closed).toBe(1006);
    const unknown = clientOf("nowhere/ws");
    expect((await unknown.next()).data).toMatchObject({ code: "FACTORY_ERROR", factory_name: "nowhere" });
    expect(await unknown.closed).toBe(1000);
    const { token } = await openenv.platform.server.access.tokens.create({ owner: "eve", roles: ["trainer"], maxInstances: 1 });
    await using first = clientOf("echo/ws", token);
    await first.ask({ type: "state" });
    const second = clientOf("echo/ws", token);
    expect((await second.next()).data).toEqual({
      code: "CAPACITY_REACHED",
      message: "Server at capacity: 1/1 sessions active.",
      active_sessions: 1,
      max_sessions: 1,
    });
    const lost = clientOf("echo/ws?session_id=none");
    expect((await lost.next()).data.code).toBe("SESSION_ERROR");
  });

  it("is closed with a code when a message is too long or not text", async () => {
    const long = clientOf("echo/ws");
    await long.send(`"${"x".repeat(16 * 1024 ** 2)}"`);
    expect(await long.closed).toBe(1009);
    const binary = clientOf("echo/ws");
    await binary.ask({ type: "state" });
    binary.socket.send(new Uint8Array(3));
    expect(await binary.closed).toBe(1003);
  });

  it("ends when its connection breaks off without a good-bye", async () => {
    const { hostname, port } = new URL(openenv.platform.dataUrl);
    const socket = connect(Number(port), hostname);
    socket.write(
      `GET /openenv/${openenv.ada}/echo/ws HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`,
    );
    const reset = Buffer.from('{"type":"reset"}');
    socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | reset.length, 0, 0, 0, 0]), reset]));
    await vi.waitFor(async () => expect(await openenv.running()).toBe(1), { timeout: 10_000 });
    socket.destroy();
    await openenv.untilNoneRuns();
  });

  it("is one of many at the same time, each with an episode of its own", async () => {
    const headers = { authorization: `Bearer ${await openenv.tokenOf("eve", "publisher")}` };
    const token = await openenv.tokenOf("eve", "trainer");
    const ref = await publish(openenv.platform, projects.echo, { isolation: "shared", headers });
    const clients = Array.from({ length: 64 }, () => clientOf(`${ref}/ws`, token));
    const rewards = await Promise.all(
      clients.map(async (client, at) => {
        expect((await client.ask({ type: "reset", data: { task_id: "greet" } })).data.observation).toMatchObject({ task_id: "greet" });
        const text = at % 2 === 0 ? "hello" : `I am ${at}`;
        expect((await client.step("echo", { text })).data.observation.result.data).toBe(text);
        return (await client.step("submit")).data.reward;
      }),
    );
    expect(rewards).toEqual(clients.map((_, at) => (at % 2 === 0 ? 1 : 0.2)));
    for (const client of clients) await client[Symbol.asyncDispose]();
    await openenv.untilNoneRuns();
  }, 60_000);
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
