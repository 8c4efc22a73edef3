import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { askOpenEnv, OpenEnvClient } from "./fixtures/openenv.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

describeNeeding("redis", "OpenEnv sessions of two servers", () => {
  let home: string;
  let redis: RedisServer;
  let here: Platform;
  let there: Platform;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), "aenv-openenv-"));
    redis = await startRedis();
    here = await startPlatform({ store: redis.url, home });
    there = await startPlatform({ store: redis.url, home });
    await publish(here, projects.echo);
  });
  afterAll(async () => {
    await here?.close();
    await there?.close();
    await redis?.[Symbol.asyncDispose]();
    if (home !== undefined) rmSync(home, { recursive: true, force: true });
  });

  const step = async (server: Platform, episode: string, action: object) =>
    askOpenEnv(server, "echo/step", { episode_id: episode, action });
  const echo = (text: string) => ({ tool_name: "echo", arguments: { text } });
  const rpc = async (server: Platform, method: string, params: object = {}) =>
    (await askOpenEnv(server, "echo/mcp", { jsonrpc: "2.0", id: 1, method, params })).body;
  const running = async (server: Platform) =>
    ((await server.demand("GET", "/env-instance/list?status=Running")) as { items: unknown[] }).items.length;

  it("go on over HTTP at any server, and are scored once", async () => {
    expect((await askOpenEnv(here, "echo/reset", { episode_id: "a", task_id: "greet", max_steps: 9 })).status).toBe(200);
    expect((await step(there, "a", echo("hi"))).body).toMatchObject({ observation: { result: { data: "hi" } }, done: false });
    expect((await step(there, "a", { type: "list_tools" })).body.observation.tools).toHaveLength(4);
    expect((await step(here, "a", echo("hello"))).body).toMatchObject({ done: false });
    expect((await askOpenEnv(there, "echo/state?episode_id=a")).body).toMatchObject({ step_count: 2, task_id: "greet", max_steps: 9 });
    expect((await step(there, "a", { type: "submit" })).body).toMatchObject({ reward: 0.8, done: true });
    expect((await askOpenEnv(here, "echo/state?episode_id=a")).body).toMatchObject({ step_count: 3, done: true, reward: 0.8 });
    expect((await step(here, "a", echo("more"))).body).toMatchObject({ reward: 0.8, done: true, observation: { error: {} } });
    expect((await askOpenEnv(there, "echo/reset", { episode_id: "a" })).status).toBe(200);
    expect((await askOpenEnv(here, "echo/state?episode_id=a")).body).toMatchObject({ step_count: 0, done: false });
    expect((await step(here, "a", { type: "submit" })).status).toBe(200);
    expect(await running(here)).toBe(0);
  });

  it("are shared by MCP requests and WebSockets of both, and end for both", async () => {
    const { session_id } = (await rpc(here, "openenv/session/create")).result;
    await using client = new OpenEnvClient(there, `echo/ws?session_id=${session_id}`);
    await client.ask({ type: "reset", data: { task_id: "greet" } });
    expect((await rpc(here, "tools/call", { name: "echo", arguments: { text: "hello" }, session_id })).result).toMatchObject({
      data: "hello",
    });
    expect((await client.ask({ type: "state" })).data).toMatchObject({ step_count: 1 });
    const own = (await client.ask({ type: "mcp", data: { jsonrpc: "2.0", id: 1, method: "openenv/session/create" } })).data;
    expect(own.result).toEqual({ session_id });
    expect((await rpc(here, "openenv/session/close", { session_id })).result).toMatchObject({ closed: true });
    expect((await client.step("echo", { text: "hello" })).data).toMatchObject({ code: "EXECUTION_ERROR", error_code: "session.not_found" });
    expect((await rpc(there, "tools/list", { session_id })).error).toMatchObject({ message: `Unknown session_id: ${session_id}` });
    expect(await running(here)).toBe(0);
  });

  it("have one episode after two resets at the same time", async () => {
    const resets = await Promise.all([here, there].map((server) => askOpenEnv(server, "echo/reset", { episode_id: "b" })));
    expect(resets.map(({ status }) => status).filter((status) => status !== 409)).toContain(200);
    expect(resets.map(({ status }) => [200, 409].includes(status))).toEqual([true, true]);
    await vi.waitFor(async () => expect(await running(here)).toBe(1), 15_000);
    expect((await step(here, "b", echo("hi"))).status).toBe(200);
    expect((await askOpenEnv(there, "echo/state?episode_id=b")).body).toMatchObject({ step_count: 1 });
    expect((await step(there, "b", { type: "submit" })).body).toMatchObject({ done: true });
  });

  it("go on when the server that opened them is closed", async () => {
    await askOpenEnv(here, "echo/reset", { episode_id: "c", task_id: "greet" });
    await step(here, "c", echo("hello"));
    await here.close();
    await vi.waitFor(async () => expect((await step(there, "c", { type: "submit" })).body).toMatchObject({ reward: 1, done: true }), {
      timeout: 10_000,
    });
  });
});
