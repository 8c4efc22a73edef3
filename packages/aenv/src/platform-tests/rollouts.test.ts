import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { rolloutResult } from "@aenv/contract";
import { scriptedOpenAi } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { heldModel, ONE_TURN, oracle, resultsOf, SOLVES, startRollouts } from "./fixtures/rollouts.ts";

vi.setConfig({ testTimeout: 30_000 });

let world: Awaited<ReturnType<typeof startRollouts>>;
beforeAll(async () => {
  world = await startRollouts();
});
afterAll(() => world?.close());

describe("a rollout", () => {
  it("is played against the caller's model, and its scored result is streamed with tokens", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "sglang", weightVersion: "12" } });
    const group = { id: "g", index: 0, size: 1 };
    const response = await world.post({
      rollouts: [world.rollout(model, { id: "first", group, metadata: { step: 3 } }, { tokens: "service" })],
    });
    const [result] = await resultsOf(response);
    expect(response.headers.get("content-type")).toBe("application/x-ndjson");
    expect(rolloutResult.parse(result)).toEqual(result);
    expect(result).toMatchObject({
      id: "first",
      attempt: 0,
      task: { id: "greet", split: "train", index: 0 },
      group,
      outcome: { kind: "scored", reward: 1, components: { said_it: 1, brief: 1 } },
      stop_reason: "done",
      truncated: false,
      num_turns: 2,
      tool_calls: 1,
      capture: "tokens",
      metadata: { step: 3 },
      provenance: { environment: "echo@1.0.0", agent: "openai", model: "m" },
    });
    const [sequence] = result?.sequences ?? [];
    expect(result?.sequences).toHaveLength(1);
    expect(sequence?.turns).toEqual(["n0", "n1"]);
    expect(sequence?.weight_versions.map(({ version }) => version)).toEqual(["12", "12"]);
    expect(sequence?.loss_mask.filter((mask) => mask === 1)).toHaveLength(
      (result?.turns ?? []).reduce((sum, turn) => sum + (turn.completion_token_ids?.length ?? 0), 0),
    );
    expect(model.requests.every(({ stream }) => !stream)).toBe(true);
  });

  it("has two sequences if the second prompt does not begin with the tokens of the first turn", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm", drifts: true } });
    const { capture, sequences } = await world.play(world.rollout(model, {}, { tokens: "service" }));
    expect(capture).toBe("tokens");
    expect(sequences.map(({ turns }) => turns)).toEqual([["n0"], ["n1"]]);
  });

  it("plays a task of the trainer's own, if the environment takes such tasks", async () => {
    const given = { inline: { goal: "surprise" } };
    expect(await world.play(world.rollout(null, { ...oracle, task: given }))).toMatchObject({
      task: { id: "inline", split: null, index: null, ...given },
      outcome: { kind: "scored", reward: 1 },
    });
    expect(await world.play(world.rollout(null, { ...oracle, task: { inline: { goal: 7 } } }))).toMatchObject({
      outcome: { kind: "unscored", cause: "environment", stage: "reset", retryable: false, message: expect.stringContaining("goal") },
    });
  });

  it.each(["trainer", "service"])("gives the reward the trainer's arguments, with tokens of the %s", async (tokens) => {
    const says = ["hello", "more"].map((text) => ({
      toolCalls: [{ name: "echo", arguments: { text, calls: 2, reward_args: { calls: 2 } } }],
    }));
    await using model = await scriptedOpenAi(({ turn }) => says[turn] ?? "done", { tokens: { engine: "vllm" } });
    const scored = (own: Record<string, unknown>) => world.play(world.rollout(model, own, { tokens }));
    expect(await scored({})).toMatchObject({ outcome: { reward: 0.8, components: { brief: 0 } } });
    const lenient = await scored({ reward_args: { calls: 2 } });
    expect(rolloutResult.parse(lenient)).toEqual(lenient);
    expect(lenient).toMatchObject({ reward_args: { calls: 2 }, outcome: { reward: 1, components: { brief: 1 } } });
    const { outcome } = await scored({ reward_args: { calls: 0 } });
    expect(outcome).toMatchObject({ kind: "unscored", cause: "environment", stage: "score", message: expect.stringContaining("calls") });
  });

  it("is unscored by the model if the service wants tokens and the endpoint returns none", async () => {
    await using model = await scriptedOpenAi(SOLVES);
    const result = await world.play(world.rollout(model, { retries: 3 }, { tokens: "service" }));
    expect(result.outcome).toMatchObject({ kind: "unscored", cause: "model", stage: "play", retryable: false });
    expect(result.outcome).not.toHaveProperty("reward");
    expect(result).toMatchObject({ attempt: 0, sequences: [], capture: "text" });
    expect(model.requests).toHaveLength(1);
  });

  it("sends no field that OpenAI does not know and returns no tokens if the trainer records them", async () => {
    await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
    const result = await world.play(
      world.rollout(model, { seed: 7 }, { sampling: { temperature: 1, max_tokens: 100 }, extra_body: { x: 1 } }),
    );
    expect(Object.keys(model.requests[0]?.body ?? {}).sort()).toEqual(["max_tokens", "messages", "model", "temperature", "tools", "x"]);
    expect(result).toMatchObject({ capture: "text", sequences: [], outcome: { kind: "scored" } });
    expect(result.turns.every((turn) => turn.prompt_token_ids === null && turn.logprobs === null)).toBe(true);
  });

  it("asks once for tokens where the endpoint may refuse them, and goes on without", async () => {
    await using model = await scriptedOpenAi((request) => {
      if (request.body.return_token_ids === true) return { status: 400, message: "unknown argument return_token_ids" };
      return request.turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "done";
    });
    const first = await world.play(world.rollout(model, {}, { tokens: "auto" }));
    const second = await world.play(world.rollout(model, {}, { tokens: "auto" }));
    for (const one of [first, second]) expect(one).toMatchObject({ capture: "text", outcome: { kind: "scored", reward: 1 } });
    expect(model.requests.filter(({ body }) => body.return_token_ids === true)).toHaveLength(1);
    await using knows = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
    expect(await world.play(world.rollout(knows, {}, { tokens: "auto" }))).toMatchObject({ capture: "tokens" });
  });

  it.each(["chat", "responses", "messages"] as const)("plays a model behind the API '%s'", async (api) => {
    await using model = await scriptedOpenAi(SOLVES);
    const result = await world.play(world.rollout(model, {}, { api }));
    expect(result.outcome).toMatchObject({ kind: "scored", reward: 1 });
    expect(model.requests.map((request) => request.api)).toEqual([api, api]);
  });

  it("waits for an endpoint that answers 429 with Retry-After, and does not count that as an attempt", async () => {
    let busy = 3;
    await using model = await scriptedOpenAi(({ turn }) => {
      if (busy-- > 0) return { status: 429, message: "weights are updated", headers: { "retry-after": "0" } };
      return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "done";
    });
    expect(await world.play(world.rollout(model, { retries: 0 }))).toMatchObject({ attempt: 0, outcome: { kind: "scored", reward: 1 } });
  });

  it("is played again after a failure that may pass, and is unscored after the last attempt", async () => {
    const paths: (string | undefined)[] = [];
    const server = createServer((request: IncomingMessage, response) => {
      paths.push(request.url);
      response.setHeader("content-type", "application/json").end("{}");
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    try {
      const { port } = server.address() as AddressInfo;
      const result = await world.play(world.rollout({ baseUrl: `http://127.0.0.1:${port}/sessions/ab12` }, { retries: 2 }));
      expect(result).toMatchObject({ attempt: 2, stop_reason: "error", outcome: { kind: "unscored", cause: "model", retryable: true } });
      expect(result.earlier_attempts).toMatchObject({ attempts: 2, usage: { prompt_tokens: 0 }, cost: null });
      // The base URL is only appended to: it has no /v1, so the request has none.
      expect(paths).toEqual(Array.from({ length: 3 }, () => "/sessions/ab12/chat/completions"));
    } finally {
      server.close();
      server.closeAllConnections();
    }
  });

  it("is unscored by the model if the endpoint cannot be reached, and the message does not hold the caller's key", async () => {
    await using model = await scriptedOpenAi(() => ({ status: 401, message: "wrong key: model-secret" }));
    const { outcome } = await world.play(world.rollout(model));
    expect(outcome).toMatchObject({ kind: "unscored", cause: "model", message: expect.stringContaining("wrong key: ***") });
  });

  it("is unscored by the environment if the task does not exist", async () => {
    for (const task of [{ id: "nope" }, { split: "train", index: 99 }, { split: "nope", index: 0 }]) {
      const { outcome } = await world.play(world.rollout(null, { ...oracle, task }));
      expect(outcome).toMatchObject({ kind: "unscored", cause: "environment" });
    }
  });

  it("plays a task by its place in a split, and ends at the agent's limits with a score", async () => {
    const found = await world.play(world.rollout(null, { ...oracle, task: { split: "test", index: 0 } }));
    expect(found).toMatchObject({ task: { id: "recall", split: "test", index: 0 }, outcome: { kind: "scored", reward: 1 } });
    await using model = await scriptedOpenAi(() => ({ toolCalls: [{ name: "remember", arguments: { name: "a", text: "b" } }] }));
    const limited = await world.play(world.rollout(model, { limits: { turns: 2 } }));
    expect(limited).toMatchObject({ stop_reason: "max_turns", truncated: true, num_turns: 2, outcome: { kind: "scored" } });
  });
});

it("accepts biased sampling if the caller says so", async () => {
  await using model = await scriptedOpenAi(SOLVES, { tokens: { engine: "vllm" } });
  const own = { tokens: "service", sampling: { top_p: 0.9 }, allow_truncated_sampling: true };
  expect(await world.play(world.rollout(model, {}, own))).toMatchObject({ capture: "tokens", provenance: { sampling: { top_p: 0.9 } } });
});

it("waits for an instance at the owner's limit of instances, and a revoked token ends what is played with it", async () => {
  const { token, row } = await world.platform.server.access.tokens.create({ owner: "carl", roles: ["trainer"], maxInstances: 1 });
  const carl = { authorization: `Bearer ${token}` };
  const results = await resultsOf(await world.post({ rollouts: Array.from({ length: 4 }, () => world.rollout(null, oracle)) }, carl));
  expect(results.map(({ outcome }) => outcome.kind)).toEqual(["scored", "scored", "scored", "scored"]);
  const again = await world.platform.token("carl", "trainer");
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  // Other variables need another instance, which the revoked token can no longer create.
  const late = world.rollout(model, { ...ONE_TURN, retries: 0, variables: { LATE: "yes" } });
  const first = world.rollout(model, { ...ONE_TURN, id: "holds-the-instance" });
  await world.post({ rollouts: [first, late], stream: false }, carl);
  await asked;
  await world.platform.server.access.tokens.revoke(row.id);
  answer();
  const response = await world.call("GET", `/rollouts/${late.id}?wait=30`, again);
  expect(await response.json()).toMatchObject({ outcome: { kind: "unscored", cause: "cancelled", retryable: false } });
});

it("a rollout that runs ends unscored when its token is revoked, although the model still answers", async () => {
  const { token, row } = await world.platform.server.access.tokens.create({ owner: "dora", roles: ["trainer"] });
  const dora = { authorization: `Bearer ${token}` };
  const other = await world.platform.token("dora", "trainer");
  const isAsked = Promise.withResolvers<void>();
  const mayAnswer = Promise.withResolvers<void>();
  let turns = 0;
  await using model = await scriptedOpenAi(async () => {
    if (++turns === 2) {
      isAsked.resolve();
      await mayAnswer.promise;
    }
    return { toolCalls: [{ name: "remember", arguments: { name: "a", text: "b" } }] };
  });
  const one = world.rollout(model, { limits: { turns: 50 }, retries: 3 });
  await world.post({ rollouts: [one], stream: false }, dora);
  await isAsked.promise;
  await world.platform.server.access.tokens.revoke(row.id);
  mayAnswer.resolve();
  const response = await world.call("GET", `/rollouts/${one.id}?wait=30`, other);
  expect(await response.json()).toMatchObject({
    outcome: { kind: "unscored", cause: "cancelled", retryable: false, message: expect.stringContaining("was revoked or has expired") },
  });
  // Before, all 50 turns were played, because the id alone opened the instance.
  expect(turns).toBeLessThanOrEqual(3);
});

it("an owner's rollout is played while another owner's hang in every place that this owner can have", async () => {
  const { model, asked, answer } = await heldModel();
  await using _ = model;
  // The server plays four at once.
  const hanging = Array.from({ length: 6 }, () => world.rollout(model, ONE_TURN));
  await world.post({ rollouts: hanging, stream: false });
  await asked;
  await expect.poll(() => model.requests.length).toBe(4);
  // Before: it waited until one of the four ended, which may be after a day.
  const [result] = await resultsOf(await world.post({ rollouts: [world.rollout(null, oracle)] }, world.bob));
  expect(result).toMatchObject({ outcome: { kind: "scored" } });
  answer();
  for (const { id } of hanging) expect((await world.call("GET", `/rollouts/${id}?wait=30`)).status).toBe(200);
});

it("plays many rollouts on few instances", async () => {
  const rollouts = Array.from({ length: 40 }, () => world.rollout(null, oracle));
  const results = await resultsOf(await world.post({ rollouts }));
  expect(results.filter(({ outcome }) => outcome.kind === "scored" && outcome.reward === 1)).toHaveLength(40);
  const { items } = (await world.platform.demand("GET", "/env-instance/list?status=Running&limit=1000", undefined, world.ada)) as {
    items: unknown[];
  };
  expect(items.length).toBeLessThanOrEqual(8);
});
