import { rolloutResult, sessionScore, sessionStart, sessionStep } from "@aenv/contract";
import { scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { resultsOf } from "./hostile/mallory.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

const BETS = () => ({ toolCalls: [{ name: "act", arguments: { move: "b" } }] });

let platform: Platform;
let kuhn: string;
let echo: string;
let shapes: string;
beforeAll(async () => {
  platform = await startPlatform({ store: "memory:" });
  kuhn = await publish(platform, projects.kuhn, { isolation: "shared" });
  shapes = await publish(platform, projects.shapes, { isolation: "shared" });
  echo = await publish(platform, projects.echo, { isolation: "shared" });
});
afterAll(() => platform?.close());

const send = (method: string, path: string, body?: unknown) =>
  fetch(platform.controlUrl + path, {
    method,
    ...(body !== undefined && { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });

describe("rollouts with players", { timeout: 60_000 }, () => {
  const play = async (rollouts: readonly object[]) =>
    (await resultsOf(await send("POST", "/rollouts", { stream: true, rollouts }))).map((one) => rolloutResult.parse(one));
  const oracle = { agent: { kind: "oracle" } };

  it("have the rewards of both, and the tokens of what is trained only", async () => {
    await using model = await scriptedOpenAi(BETS, { tokens: { engine: "vllm" } });
    const trained = { model: { base_url: model.baseUrl, name: "m", tokens: "service" } };
    const frozen = { model: { base_url: model.baseUrl, name: "old", api_key: "key-of-the-opponent" }, trainable: false };
    const request = { id: "a", environment: kuhn, seed: 1, players: { first: trained, second: frozen } };
    const [result] = await play([request]);
    expect(result).toMatchObject({
      outcome: { kind: "scored", reward: 0 },
      capture: "tokens",
      messages: [],
      provenance: { agent: "players", model: "m, old" },
      roles: {
        first: { model: "m", trainable: true, outcome: { kind: "scored" } },
        second: { model: "old", trainable: false, outcome: { kind: "scored" } },
      },
    });
    expect(result?.sequences.map(({ role, turns }) => [role, turns])).toEqual([["first", ["first-n0"]]]);
    expect(result?.turns.map(({ role, message, prompt_token_ids: ids }) => [role, message?.role, ids !== null])).toEqual([
      ["first", "assistant", true],
      ["second", "assistant", false],
    ]);
    const both = { ...request, id: "b", players: { first: trained, second: trained } };
    expect((await play([both]))[0]?.sequences.map(({ role }) => role)).toEqual(["first", "second"]);
  });

  it("exchange their roles by the seed, and sum to zero", async () => {
    const players = { first: oracle, second: [{ agent: { kind: "random" } }, { agent: { kind: "noop" } }] };
    const requests = Array.from({ length: 20 }, (_, seed) => ({ id: `z${seed}`, environment: kuhn, seed, players, rotate: true }));
    const results = await play(requests);
    for (const { outcome, roles, seed } of results) {
      expect(outcome).toMatchObject({ kind: "scored", reward: 0 });
      expect(roles?.first?.player).toBe(seed % 2 === 0 ? "first" : "second");
    }
    const drawn = new Set(results.flatMap(({ roles }) => Object.values(roles ?? {}).map(({ agent }) => agent)));
    expect(drawn).toEqual(new Set(["oracle", "random", "noop"]));
    // The agent that does nothing has left, so it forfeits.
    const left = results.flatMap(({ roles }) => Object.values(roles ?? {})).filter(({ agent }) => agent === "noop");
    expect(left.map(({ forfeit, outcome }) => [forfeit, outcome])).toContainEqual(["left", expect.objectContaining({ reward: -1 })]);
  });

  it.each([
    [{ players: { first: oracle, second: oracle }, agent: { kind: "oracle" } }, 400, "give either players, or agent and model"],
    [{ players: { first: {}, second: oracle } }, 400, "players.first: the agent 'openai' needs a model"],
    [{ rotate: true, agent: { kind: "oracle" } }, 400, "rotate is for players"],
    [{ players: { First: oracle } }, 400, "lower-case"],
  ])("that cannot be played are refused: %j", async (own, status, message) => {
    const answer = await send("POST", "/rollouts", { rollouts: [{ id: "bad", environment: kuhn, ...own }] });
    expect([answer.status, await answer.text()]).toEqual([status, expect.stringContaining(message)]);
  });

  it("are unscored if the players do not fit the roles", async () => {
    const [missing, none] = await play([
      { id: "missing", environment: kuhn, players: { first: oracle } },
      { id: "none", environment: echo, task: { id: "greet" }, players: { first: oracle } },
    ]);
    expect(missing?.outcome).toMatchObject({
      kind: "unscored",
      retryable: false,
      message: expect.stringContaining("'second' has no player"),
    });
    expect(none?.outcome).toMatchObject({ kind: "unscored", retryable: false, message: expect.stringContaining("has no roles") });
  });
});

describe("sessions with roles", () => {
  const begin = async (seed: number, environment = kuhn) =>
    sessionStart.parse(await (await send("POST", "/sessions", { environment, seed })).json());
  const act = (session: string, role: string, move: string) =>
    send("POST", `/sessions/${session}/step`, { role, tool: { name: "act", arguments: { move } } });
  const step = async (...args: Parameters<typeof act>) => sessionStep.parse(await (await act(...args)).json());
  const score = async (session: string) => sessionScore.parse(await (await send("POST", `/sessions/${session}/score`, {})).json());

  it("begin with what each role sees, say whose turn it is, and score each role", async () => {
    const start = await begin(0);
    expect(start).toMatchObject({
      observation: "",
      messages: [],
      turn: ["first"],
      roles: {
        first: { observation: "Your card is J.", messages: [{ role: "user" }], tools: [{ name: "act" }] },
        second: { observation: "Your card is Q." },
      },
    });
    expect(await step(start.session, "first", "p")).toMatchObject({
      observation: "p",
      done: false,
      turn: ["second"],
      rewards: { first: null, second: null },
      observations: { second: '{"card":"Q","history":"p"}' },
    });
    const early = await step(start.session, "first", "b");
    expect(early).toMatchObject({ is_error: true, done: false, turn: ["second"], observation: expect.stringContaining("second's turn") });
    expect(await step(start.session, "second", "p")).toMatchObject({ done: true, turn: [] });
    const scored = await score(start.session);
    expect(scored).toMatchObject({
      outcome: { kind: "scored", reward: 0 },
      roles: { first: { outcome: { kind: "scored", reward: -1 } }, second: { outcome: { kind: "scored", reward: 1 } } },
    });
    expect(await score(start.session)).toEqual(scored);
    await send("DELETE", `/sessions/${start.session}`);
  });

  it("tell roles that act at once what they see when all have acted, and each once", async () => {
    const { session, turn } = await begin(1, shapes);
    const show = async (role: string, shape: string) => {
      const body = { role, tool: { name: "show", arguments: { shape } } };
      return sessionStep.parse(await (await send("POST", `/sessions/${session}/step`, body)).json());
    };
    expect(turn).toEqual(["left", "right"]);
    expect(await show("left", "r")).toMatchObject({ turn: ["right"], observations: {}, done: false });
    const rounds = "rounds: rs";
    expect(await show("right", "s")).toMatchObject({ turn: ["left", "right"], observations: { left: rounds, right: rounds } });
    await send("DELETE", `/sessions/${session}`);
  });

  it("are not for the OpenEnv protocol, which has one agent, and says so", async () => {
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${platform.dataUrl}/openenv/${kuhn}/reset`, { method: "POST", headers, body: "{}" });
    expect(answer.ok).toBe(false);
    expect(await answer.text()).toContain("has the roles first, second, and this protocol is for one agent; use POST /sessions");
  });

  it("refuse a step that names no role, or none of the environment's, and a role where there are none", async () => {
    const { session } = await begin(1);
    const bare = await send("POST", `/sessions/${session}/step`, { tool: { name: "act", arguments: { move: "p" } } });
    expect([bare.status, await bare.text()]).toEqual([
      400,
      expect.stringContaining("name the 'role' that acts; the roles are first, second"),
    ]);
    const other = await act(session, "third", "p");
    expect([other.status, await other.text()]).toEqual([400, expect.stringContaining("no role 'third'")]);
    await send("DELETE", `/sessions/${session}`);
    const plain = sessionStart.parse(await (await send("POST", "/sessions", { environment: echo, task: { id: "greet" } })).json());
    expect([plain.roles, plain.turn]).toEqual([undefined, undefined]);
    const named = await act(plain.session, "first", "p");
    expect([named.status, await named.text()]).toEqual([400, expect.stringContaining("has no roles")]);
    await send("DELETE", `/sessions/${plain.session}`);
  });
});
