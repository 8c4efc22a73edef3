import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { RolloutResult } from "@aenv/contract";
import { describeNeeding, type RedisServer, type ScriptedOpenAi, scriptedOpenAi, startRedis } from "@aenv/testing";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { type ServerProcess, type Starting, startServerProcess } from "./crash/server-process.ts";
import { projects, publish } from "./platform.ts";
import { removeHome } from "./processes.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

/** Servers that come and go on one home, and the model of their rollouts. */
function world(storeOf: () => string | undefined) {
  let home: string | undefined;
  const started: Starting[] = [];
  const start = () => {
    const flags = { poolMin: 0, poolMax: 1, round: "200ms", rolloutsAtOnce: 4, store: storeOf() };
    home ??= mkdtempSync(join(tmpdir(), "aenv-rollouts-"));
    const starting = startServerProcess(home, { flags });
    started.push(starting);
    return starting.ready;
  };
  const clear = async () => {
    await Promise.allSettled(started.map((server) => server.kill()));
    if (home !== undefined) await removeHome(home);
  };
  return { start, clear };
}

/** A model whose answers wait until they are let through. */
async function gatedModel() {
  let open = Promise.withResolvers<void>();
  let waiting = 0;
  const listeners = new Set<() => void>();
  const model = await scriptedOpenAi(async ({ turn }) => {
    waiting++;
    for (const listener of listeners) listener();
    await open.promise;
    return turn === 0 ? { toolCalls: [{ name: "echo", arguments: { text: "hello" } }] } : "done";
  });
  return {
    model,
    hold: () => {
      open = Promise.withResolvers();
      waiting = 0;
    },
    letThrough: () => open.resolve(),
    /** Resolves when so many requests wait. */
    waitingFor: (count: number) =>
      new Promise<void>((resolve) => {
        const check = () => {
          if (waiting < count) return;
          listeners.delete(check);
          resolve();
        };
        listeners.add(check);
        check();
      }),
  };
}

/** So large that requests and results fill rows of their own. */
const metadata = { long: "x".repeat(100_000) };

const rollout = (id: string, environment: string, model: ScriptedOpenAi) => ({
  id,
  environment,
  task: { id: "greet" },
  model: { base_url: model.baseUrl, api_key: "model-secret" },
  limits: { turns: 2 },
  metadata,
});

function post(server: ServerProcess, rollouts: readonly object[], stream: boolean): Promise<Response> {
  return fetch(`${server.controlUrl}/rollouts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rollouts, stream }),
  });
}

async function resultsOf(response: Response): Promise<RolloutResult[]> {
  const lines = (await response.text()).split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line)).filter((one) => one.type !== "ping");
}

async function resultOf(server: ServerProcess, id: string): Promise<RolloutResult> {
  for (;;) {
    const response = await fetch(`${server.controlUrl}/rollouts/${id}?wait=30`);
    if (response.status !== 202) return (await response.json()) as RolloutResult;
  }
}

const named = (prefix: string, count: number) => Array.from({ length: count }, (_, at) => `${prefix}${at}`);

describe("a server that is killed while it plays", () => {
  const { start, clear } = world(() => undefined);
  let gate: Awaited<ReturnType<typeof gatedModel>>;
  beforeAll(async () => {
    gate = await gatedModel();
  });
  afterAll(async () => {
    await clear();
    await gate?.model.close();
  });

  it("leaves its rollouts to the next one, which plays each to one result as a further attempt", async () => {
    const { model, waitingFor, hold, letThrough } = gate;
    const first = await start();
    const echo = await publish(first, projects.echo);
    const ids = named("a", 6);
    const rollouts = ids.map((id) => rollout(id, echo, model));
    expect((await post(first, rollouts, false)).status).toBe(202);
    await waitingFor(4);
    await first.kill();
    hold();
    letThrough();
    const second = await start();
    const results = await Promise.all(ids.map((id) => resultOf(second, id)));
    expect(results.map(({ outcome }) => outcome.kind)).toEqual(ids.map(() => "scored"));
    for (const result of results) expect(result.metadata).toEqual(metadata);
    expect(results.filter(({ attempt }) => attempt === 1)).toHaveLength(4);
    expect(results.filter(({ attempt }) => attempt === 0)).toHaveLength(2);
    expect(await resultsOf(await post(second, rollouts, true))).toHaveLength(ids.length);
    await second.stop();
  });
});

describeNeeding("redis", "two servers on one Redis", () => {
  let redis: RedisServer;
  let gate: Awaited<ReturnType<typeof gatedModel>>;
  let echo: string;
  let servers: [ServerProcess, ServerProcess];
  const { start, clear } = world(() => redis.url);

  beforeAll(async () => {
    [redis, gate] = await Promise.all([startRedis(), gatedModel()]);
    servers = await Promise.all([start(), start()]);
    echo = await publish(servers[0], projects.echo);
  });
  afterAll(async () => {
    await clear();
    await gate?.model.close();
    await redis?.[Symbol.asyncDispose]();
  });

  it("share the rollouts of a request, and either of them streams, returns and cancels all", async () => {
    const { model, waitingFor, letThrough, hold } = gate;
    const [one, other] = servers;
    const ids = named("b", 8);
    const rollouts = ids.map((id) => rollout(id, echo, model));
    const streamed = post(one, rollouts, true);
    // Each plays four at once, so eight only run if both play.
    await waitingFor(8);
    expect((await fetch(`${other.controlUrl}/rollouts/b0`, { method: "DELETE" })).status).toBe(204);
    letThrough();
    const results = await resultsOf(await streamed);
    expect(results.map(({ id }) => id).sort()).toEqual(ids);
    for (const { id, outcome } of results) expect([id, outcome.kind]).toEqual([id, id === "b0" ? "unscored" : "scored"]);
    const again = await resultsOf(await post(other, rollouts, true));
    const byId = (all: readonly RolloutResult[]) => [...all].sort((a, b) => a.id.localeCompare(b.id));
    expect(byId(again)).toEqual(byId(results));
    hold();
  });

  it("lose nothing when one is killed: the other plays its rollouts again, and each has one result", async () => {
    const { model, waitingFor, letThrough } = gate;
    const [one, other] = servers;
    const ids = named("c", 8);
    const rollouts = ids.map((id) => rollout(id, echo, model));
    const streamed = post(other, rollouts, true);
    await waitingFor(8);
    await one.kill();
    letThrough();
    const results = await resultsOf(await streamed);
    expect(results.map(({ id }) => id).sort()).toEqual(ids);
    expect(results.map(({ outcome }) => outcome.kind)).toEqual(ids.map(() => "scored"));
    expect(results.filter(({ attempt }) => attempt === 1).length).toBeGreaterThanOrEqual(4);
    const listed = (await (await fetch(`${other.controlUrl}/rollouts?limit=100&fields=id`)).json()) as { rollouts: unknown[] };
    expect(listed.rollouts).toHaveLength(16);
  });
});
