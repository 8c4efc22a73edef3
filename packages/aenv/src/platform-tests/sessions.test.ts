import { listedTasks, sessionScore, sessionStart, sessionStep } from "@aenv/contract";
import { describeNeeding, type RedisServer, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

type Headers = Readonly<Record<string, string>>;

/** A trainer that uses the session routes of a server. */
function trainerOf({ controlUrl }: Pick<Platform, "controlUrl">, headers: Headers = {}) {
  const send = async (method: string, path: string, body?: unknown) => {
    const response = await fetch(controlUrl + path, {
      method,
      headers: { ...headers, ...(body !== undefined && { "content-type": "application/json" }) },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text) };
  };
  const begin = async (request: object) => sessionStart.parse((await send("POST", "/sessions", request)).body);
  const step = async (session: string, action: object) => sessionStep.parse((await send("POST", `/sessions/${session}/step`, action)).body);
  const score = async (session: string, request: object = {}) =>
    sessionScore.parse((await send("POST", `/sessions/${session}/score`, request)).body);
  const end = (session: string) => send("DELETE", `/sessions/${session}`);
  return { send, begin, step, score, end };
}

const echo = (text: string) => ({ tool: { name: "echo", arguments: { text } } });

async function running({ demand }: Platform, headers: Headers = {}): Promise<string[]> {
  const { items } = (await demand("GET", "/env-instance/list?status=Running", undefined, headers)) as { items: { id: string }[] };
  return items.map(({ id }) => id);
}

describe("sessions", () => {
  let platform: Platform;
  let admin: Headers;
  let ada: ReturnType<typeof trainerOf>;
  let bob: ReturnType<typeof trainerOf>;
  let agent: ReturnType<typeof trainerOf>;
  let adaToken: Headers;
  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on", round: "50ms" } });
    admin = await platform.token("root", "admin");
    for (const project of [projects.echo, projects.probe]) {
      const ref = await publish(platform, project, { headers: admin });
      const [name, version] = ref.split("@");
      await platform.demand("POST", `/env/${name}/${version}/visibility`, { visibility: "public" }, admin);
    }
    adaToken = await platform.token("ada", "trainer");
    ada = trainerOf(platform, adaToken);
    bob = trainerOf(platform, await platform.token("bob", "trainer"));
    agent = trainerOf(platform, await platform.token("ada", "agent"));
  });
  afterAll(() => platform?.close());

  it("give the reward the trainer's arguments", async () => {
    const { session } = await ada.begin({ environment: "echo@1.0.0", task: { id: "be-brief" } });
    for (const text of ["brevity", "more"]) await ada.step(session, echo(text));
    const wrong = await ada.send("POST", `/sessions/${session}/score`, { arguments: { calls: 0 } });
    expect(wrong).toMatchObject({ status: expect.any(Number), body: { error: { message: expect.stringContaining("calls") } } });
    expect(await ada.score(session, { arguments: { calls: 2 } })).toMatchObject({ outcome: { components: { brief: 1 } } });
  });

  it("play an episode step by step and score it once", async () => {
    const start = await ada.begin({ environment: "echo@1.0.0", task: { id: "be-brief" }, seed: 7 });
    expect(start).toMatchObject({
      observation: "Echo the word 'brevity', in as few calls as you can.",
      messages: [{ role: "system" }, { role: "user" }],
      tools: [{ name: "echo" }, { name: "remember" }],
      task: { id: "be-brief", split: "train", index: 1 },
      seed: 7,
    });
    expect(await ada.step(start.session, { text: "What shall I do?" })).toEqual({
      observation: "Nothing was echoed yet. Use the tool 'echo'.",
      content: [{ type: "text", text: "Nothing was echoed yet. Use the tool 'echo'." }],
      is_error: false,
      done: false,
      reward: null,
    });
    expect(await ada.step(start.session, echo("brevity"))).toEqual({
      observation: "brevity",
      content: [{ type: "text", text: "brevity" }],
      is_error: false,
      done: false,
      reward: 1,
    });
    const { outcome } = await ada.score(start.session, { text: "Done." });
    expect(outcome).toMatchObject({ kind: "scored", reward: 1, components: { said_it: 1, brief: 1 } });
    // The instance has ended; the score is the session's.
    expect(await running(platform, admin)).toEqual([]);
    expect((await ada.score(start.session)).outcome).toEqual(outcome);
    expect(await ada.step(start.session, echo("again"))).toMatchObject({
      is_error: true,
      done: true,
      observation: expect.stringContaining("over"),
    });
    expect(await ada.end(start.session)).toEqual({ status: 204, body: null });
    expect(await ada.end(start.session)).toEqual({ status: 204, body: null });
    expect(await ada.send("POST", `/sessions/${start.session}/score`, {})).toMatchObject({
      status: 404,
      body: { error: { code: "session.not_found" } },
    });
  });

  it("say what is wrong with a tool call as a result, and when the environment has ended the episode", async () => {
    const { session } = await ada.begin({ environment: "echo", task: { split: "test", index: 0 } });
    expect(await ada.step(session, { tool: { name: "eco" } })).toMatchObject({
      is_error: true,
      done: false,
      observation: expect.stringContaining("no tool 'eco'"),
    });
    expect(await ada.step(session, { tool: { name: "echo", arguments: { text: 5 } } })).toMatchObject({ is_error: true, done: false });
    for (let at = 1; at < 10; at++) expect(await ada.step(session, echo(`${at}`))).toMatchObject({ done: false, reward: 0 });
    expect(await ada.step(session, echo("10"))).toMatchObject({ is_error: false, done: true });
    expect(await ada.step(session, echo("11"))).toMatchObject({ is_error: true, done: true });
    expect((await ada.score(session)).outcome).toMatchObject({ reward: 0 });
    await ada.end(session);
  });

  it("play a task that the trainer makes up, if the environment takes such tasks", async () => {
    const { session, task, observation } = await ada.begin({ environment: "echo", task: { inline: { goal: "tea" } } });
    expect({ task, observation }).toEqual({
      task: { id: "inline", split: null, index: null, prompt: "Echo the word 'tea'." },
      observation: "Echo the word 'tea'.",
    });
    await ada.step(session, echo("tea"));
    expect((await ada.score(session)).outcome).toMatchObject({ reward: 1 });
    await ada.end(session);
  });

  it("belong to their owner: another trainer gets 404, an agent 403, a caller without a token 401", async () => {
    const { session } = await ada.begin({ environment: "echo", task: { id: "greet" } });
    const routes = [
      ["POST", "/step", { text: "hello" }],
      ["POST", "/score", {}],
      ["DELETE", "", undefined],
    ] as const;
    for (const [method, path, body] of routes) {
      expect((await bob.send(method, `/sessions/${session}${path}`, body)).status).toBe(404);
      expect((await agent.send(method, `/sessions/${session}${path}`, body)).status).toBe(403);
      expect((await trainerOf(platform).send(method, `/sessions/${session}${path}`, body)).status).toBe(401);
    }
    expect((await agent.send("POST", "/sessions", { environment: "echo" })).status).toBe(403);
    expect((await agent.send("GET", "/environments/echo/tasks")).status).toBe(403);
    expect(await ada.step(session, echo("hello"))).toMatchObject({ observation: "hello" });
    await ada.end(session);
    expect(await running(platform, admin)).toEqual([]);
  });

  it("go on with another token of the same owner when the first is revoked", async () => {
    const { token, row } = await platform.server.access.tokens.create({ owner: "ada", roles: ["trainer"] });
    const first = trainerOf(platform, { authorization: `Bearer ${token}` });
    const { session } = await first.begin({ environment: "echo", task: { id: "greet" } });
    await platform.server.access.tokens.revoke(row.id);
    expect((await first.send("POST", `/sessions/${session}/step`, echo("hello"))).status).toBe(401);
    expect(await ada.step(session, echo("hello"))).toMatchObject({ observation: "hello" });
    await ada.end(session);
  });

  it("count against the owner's quota", async () => {
    const { token } = await platform.server.access.tokens.create({ owner: "eve", roles: ["trainer"], maxInstances: 1 });
    const eve = trainerOf(platform, { authorization: `Bearer ${token}` });
    const { session } = await eve.begin({ environment: "echo", task: { id: "greet" } });
    expect(await eve.send("POST", "/sessions", { environment: "echo" })).toMatchObject({
      status: 429,
      body: { error: { code: "quota.exceeded", retryable: true } },
    });
    await eve.end(session);
    await eve.end((await eve.begin({ environment: "echo" })).session);
  });

  it("report a sandbox that died as a failure of the platform, never as a score", async () => {
    const { session } = await ada.begin({ environment: "probe", task: { id: "one" } });
    const crashed = await ada.send("POST", `/sessions/${session}/step`, { tool: { name: "crash" } });
    expect(crashed.status).toBeGreaterThanOrEqual(500);
    expect(crashed.body.error).toMatchObject({ code: expect.any(String), message: expect.any(String), retryable: expect.any(Boolean) });
    const scored = await ada.send("POST", `/sessions/${session}/score`, {});
    expect(scored).toMatchObject({ status: 502, body: { error: { code: "sandbox.lost" } } });
    expect(scored.body).not.toHaveProperty("outcome");
    expect((await ada.end(session)).status).toBe(204);
  });

  it("end in the middle of a step when they are deleted, and run the steps of one session in order", async () => {
    const { session } = await ada.begin({ environment: "probe", task: { id: "one" } });
    const counts = await Promise.all(Array.from({ length: 5 }, () => ada.step(session, { tool: { name: "count" } })));
    expect(counts.map(({ observation }) => observation)).toEqual(["1", "2", "3", "4", "5"]);
    const waiting = ada.send("POST", `/sessions/${session}/step`, { tool: { name: "wait", arguments: { ms: 60_000 } } });
    await vi.waitFor(async () => {
      const [id] = await running(platform, admin);
      const response = await fetch(`${platform.dataUrl}/env-instance/${id}/functions/waits`, { method: "POST", headers: adaToken });
      expect(await response.json()).toMatchObject({ data: ["begun"] });
    });
    expect((await ada.end(session)).status).toBe(204);
    expect((await waiting).status).toBeGreaterThanOrEqual(400);
    expect(await running(platform, admin)).toEqual([]);
  });

  it("end with their instance when they are idle for too long", async () => {
    const { session } = await ada.begin({ environment: "echo", ttl_seconds: 1 });
    await vi.waitFor(async () => expect(await running(platform, admin)).toEqual([]), { timeout: 15_000, interval: 100 });
    const late = await ada.send("POST", `/sessions/${session}/step`, echo("hello"));
    expect([404, 502]).toContain(late.status);
  });

  it("pass variables to the environment and keep none of them", async () => {
    const { session } = await ada.begin({ environment: "probe", variables: { GREETING: "a secret" } });
    expect(await ada.step(session, { tool: { name: "variable", arguments: { name: "GREETING" } } })).toMatchObject({
      observation: "a secret",
    });
    await ada.end(session);
  });

  it.each([
    [{}, "environment"],
    [{ environment: "nowhere" }, "nowhere"],
    [{ environment: "echo", task: { id: "gret" } }, "gret"],
    [{ environment: "echo", task: { split: "test", index: 1 } }, "it has 1"],
    [{ environment: "echo", task: { split: "none", index: 0 } }, "there is no split 'none'; there are train, test"],
    [{ environment: "echo", task: "greet" }, "task"],
    [{ environment: "echo", task: { inline: {} } }, "does not accept the task"],
    [{ environment: "probe", task: { inline: { id: "one" } } }, "plays only tasks of its list"],
    [{ environment: "echo", tasks: { id: "greet" } }, "did you mean 'task'"],
    [{ environment: "echo", ttl_seconds: 0 }, "ttl_seconds"],
    [{ environment: "probe", variables: { SETUP: "fail" } }, "told to fail"],
  ])("explain why %j is refused, and leave nothing behind", async (request, expected) => {
    const { status, body } = await ada.send("POST", "/sessions", request);
    expect(status).toBeGreaterThanOrEqual(400);
    expect(body.error.message).toContain(expected);
    expect(await running(platform, admin)).toEqual([]);
  });

  it("list the tasks of an environment by split and page, without what is hidden", async () => {
    const list = async (query: string) => listedTasks.parse((await ada.send("GET", `/environments/echo@1.0.0/tasks${query}`)).body);
    const all = await list("");
    expect(all.tasks.map(({ id, split, index }) => [id, split, index])).toEqual([
      ["greet", "train", 0],
      ["be-brief", "train", 1],
      ["recall", "test", 0],
    ]);
    expect(JSON.stringify(all)).not.toContain("sesame");
    expect(await list("?split=train&limit=1")).toEqual({
      tasks: [{ id: "greet", split: "train", index: 0, prompt: "Echo the word 'hello'." }],
      next: "greet",
    });
    expect(await list("?split=train&limit=1&after=greet")).toMatchObject({ tasks: [{ id: "be-brief" }], next: null });
    expect((await ada.send("GET", "/environments/echo/tasks?split=none")).status).toBe(400);
    expect((await ada.send("GET", "/environments/nowhere/tasks")).status).toBe(404);
    expect(await running(platform, admin)).toEqual([]);
  });
});

describeNeeding("redis", "sessions of several servers", () => {
  let redis: RedisServer;
  const servers: Platform[] = [];
  beforeAll(async () => {
    redis = await startRedis();
    for (let at = 0; at < 2; at++) servers.push(await startPlatform({ store: redis.url }));
    await publish(servers[0] as Platform, projects.echo);
  });
  afterAll(async () => {
    for (const server of servers) await server.close();
    await redis?.[Symbol.asyncDispose]();
  });

  it("go on at any server, are scored once, and end everywhere", async () => {
    const [here, there] = servers.map((server) => trainerOf(server)) as [ReturnType<typeof trainerOf>, ReturnType<typeof trainerOf>];
    const { session } = await here.begin({ environment: "echo", task: { id: "be-brief" } });
    expect(await there.step(session, { tool: { name: "remember", arguments: { name: "a", text: "b" } } })).toMatchObject({
      is_error: false,
    });
    expect(await here.step(session, { tool: { name: "remember", arguments: { name: "a" } } })).toMatchObject({ is_error: false });
    expect(await there.step(session, echo("brevity"))).toMatchObject({ reward: 1 });
    const scores = await Promise.all([here.score(session), there.score(session)]);
    expect(scores[0]).toEqual(scores[1]);
    expect(await here.end(session)).toMatchObject({ status: 204 });
    expect((await there.send("POST", `/sessions/${session}/step`, echo("x"))).status).toBe(404);
  });
});
