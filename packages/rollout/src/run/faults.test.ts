import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Trajectory } from "@aenv/contract";
import { engines, ProcessEngine } from "@aenv/sandbox";
import { faulty, type ModelFault, modelFaults, scriptedOpenAi, temporaryTree } from "@aenv/testing";
import { publish, startPlatform } from "aenvironment/platform-tests";
import { expect, it } from "vitest";
import { modelAgent } from "../agents/model.ts";
import { playEpisode } from "../episode/play.ts";
import { deaths, FaultyEngine } from "../fixtures/faulty-engine.ts";
import { instancesOn, playOptionsOf, runSettingsOf } from "../fixtures/run.ts";
import { ModelHttp } from "../models/http.ts";
import { Concurrency } from "./concurrency.ts";
import { RunFolder } from "./folder.ts";
import { playRun } from "./run.ts";

const TASKS = 100;
const SAMPLES = 100;
const SEED = 7;
const mortal = fileURLToPath(new URL("../fixtures/mortal", import.meta.url));

it(`accounts for each of ${TASKS * SAMPLES} episodes exactly once while one in ten meets a fault, and makes no reward up`, {
  timeout: 600_000,
}, async () => {
  using tree = temporaryTree();
  const log = join(tree.path, "rewards.log");
  const opened: FaultyEngine[] = [];
  await using platform = await startPlatform({
    store: "memory:",
    engine: {
      ...engines.process,
      open: async ({ home }, { runner }) => {
        const engine = new FaultyEngine(new ProcessEngine({ home }), { seed: SEED, longestLife: 1_600, variables: { MORTAL_LOG: log } });
        opened.push(engine);
        return { engine, runner };
      },
    },
  });
  const [engine] = opened as [FaultyEngine];
  const environment = await publish(platform, mortal, { isolation: "shared" });
  engine.failsStarts = true;
  const faults = new Map<ModelFault, number>();
  await using model = await scriptedOpenAi(
    faulty(({ turn }) => (turn === 0 ? { toolCalls: [{ name: "work" }] } : "Done."), {
      seed: SEED,
      share: 0.06,
      onFault: (fault) => faults.set(fault, (faults.get(fault) ?? 0) + 1),
    }),
    { keepsRequests: false },
  );
  // Pauses are not slept, so that the run is short; a silent endpoint is given up soon.
  const pauses: number[] = [];
  const sleep = (ms: number) => {
    pauses.push(ms);
    return setImmediate();
  };
  const http = new ModelHttp({ retries: 1, timeoutMs: 2_000, sleep });
  const agent = modelAgent({ api: "chat", baseUrl: model.baseUrl, apiKey: "key", name: "m", streams: true }, http);
  const cancel = new AbortController().signal;
  const instances = instancesOn(platform, environment);
  const options = playOptionsOf(agent, instances, {
    deadlineMs: 60_000,
    recordsDigests: false,
    provenance: { model: "m", client_version: "0" },
    cancel,
  });
  const settings = runSettingsOf(environment, agent, {
    tasks: Array.from({ length: TASKS }, (_, n) => ({ id: `task-${n}` })),
    samples: SAMPLES,
    seed: SEED,
    model: "m",
    records_digests: false,
  });
  const folder = new RunFolder(tree.path, "run");
  const causes = new Set<string>();
  const result = await playRun({
    folder,
    settings,
    concurrency: new Concurrency({ max: 64 }),
    retries: 1,
    cancel,
    play: async (spec) => {
      const played = await playEpisode(spec, options);
      if (played.outcome.kind === "unscored") causes.add(played.outcome.cause);
      return played;
    },
  });
  await instances.close();
  await http.close();

  const computed = new Set(readFileSync(log, "utf8").trimEnd().split("\n"));
  const ids: string[] = [];
  const madeUp: Trajectory[] = [];
  let scored = 0;
  for await (const one of folder.trajectories()) {
    ids.push(one.id);
    if (one.outcome.kind === "unscored") continue;
    scored++;
    if (!computed.delete(`${one.seed} ${one.outcome.reward}`)) madeUp.push(one);
  }
  const planned = Array.from({ length: TASKS }, (_, task) => Array.from({ length: SAMPLES }, (__, sample) => `run/${task}-${sample}`));
  expect(ids.sort()).toEqual(planned.flat().sort());
  expect(madeUp).toEqual([]);
  expect(result.summary).toMatchObject({ episodes: TASKS * SAMPLES, scored });
  // The faults were there: every kind, and one for every ten episodes at least.
  expect([...faults.keys()].sort()).toEqual([...modelFaults].sort());
  expect([...faults.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThan((TASKS * SAMPLES) / 10);
  for (const death of deaths) expect(engine.died[death]).toBeGreaterThan(0);
  expect([...causes].sort()).toEqual(["model", "sandbox"]);
  // An endpoint that is busy is waited for as long as it asks.
  expect(pauses).toContain(1_000);
});
