import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { askOpenEnv, type Headers, OpenEnvClient, startOpenEnv } from "./fixtures/openenv.ts";

let openenv: Awaited<ReturnType<typeof startOpenEnv>>;
beforeAll(async () => {
  openenv = await startOpenEnv();
});
afterAll(() => openenv?.close());

const clientOf = (path: string) => new OpenEnvClient(openenv.platform, path, openenv.ada);
const http = (path: string, body?: unknown, headers: Headers = { authorization: `Bearer ${openenv.ada}` }) =>
  askOpenEnv(openenv.platform, path, body, headers);

describe("OpenEnv's plain HTTP routes", () => {
  it("describe the environment", async () => {
    expect(await http("echo@1.0.0/health")).toEqual({ status: 200, body: { status: "healthy" } });
    expect((await http("echo@1.0.0//health")).status).toBe(200);
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
    await openenv.untilNoneRuns();
    expect((await http("echo/reset", { episode_id: "mine", task_id: "greet" })).status).toBe(200);
    await http("echo/step", { episode_id: "mine", action: { tool_name: "echo", arguments: { text: "hello" } } });
    expect((await http("echo/state?episode_id=mine")).body).toMatchObject({ step_count: 1 });
    const bob = { authorization: `Bearer ${await openenv.tokenOf("bob", "trainer")}` };
    expect((await http("echo/step", { episode_id: "mine", action: { type: "submit" } }, bob)).status).toBe(404);
    expect((await http("echo/step", { episode_id: "mine", action: { type: "submit" } })).body).toMatchObject({ reward: 1, done: true });
    expect((await http("echo/step", { action: "echo" })).body).toMatchObject({ detail: [{ loc: ["action"] }] });
    expect((await http("echo/reset", "{")).status).toBe(422);
    await openenv.untilNoneRuns();
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
    for (const headers of [basic(`token:${openenv.ada}`), basic(`${openenv.ada}:`), basic(openenv.ada)])
      expect((await http("echo/health", undefined, headers)).status).toBe(200);
    expect((await http(`${openenv.ada}/echo/health`, undefined, {})).status).toBe(200);
    expect((await http("echo/health", undefined, {})).status).toBe(401);
    for (const path of ["health", "metadata", "schema", "state", "list_environments", "echo/splits"])
      expect([path, (await http(`echo/${path}`, undefined, { authorization: `Bearer ${openenv.agent}` })).status]).toEqual([path, 403]);
    for (const path of ["reset", "step", "mcp"])
      expect([path, (await http(`echo/${path}`, {}, { authorization: `Bearer ${openenv.agent}` })).status]).toEqual([path, 403]);
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
    await using client = clientOf(`echo/ws?session_id=${id}`);
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
    expect(await clientOf(`echo/ws?session_id=${id}`).next()).toMatchObject({ data: { code: "SESSION_ERROR" } });
    client.socket.close();
    await client.closed;
    await vi.waitFor(async () =>
      expect(await rpc("openenv/session/close", { session_id: id })).toMatchObject({ result: { closed: true } }),
    );
  });

  it("makes an episode for a single call", async () => {
    expect((await rpc("tools/call", { name: "echo", arguments: { text: "hi" } })).result).toMatchObject({ data: "hi" });
    await openenv.untilNoneRuns();
  });

  it("is a WebSocket too", async () => {
    await using client = clientOf("echo/mcp");
    expect(
      await client.ask({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "echo", arguments: { text: "hi" } } }),
    ).toMatchObject({ result: { data: "hi" } });
    expect(await client.ask("{")).toMatchObject({ error: { code: -32700 } });
  });
});
