import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { headers as names, type Trajectory } from "@aenv/contract";
import {
  Concurrency,
  InstancePool,
  playEpisode,
  playOptions,
  playRun,
  RunFolder,
  type RunSettings,
  scriptedAgent,
  TrajectoryWriter,
} from "@aenv/rollout";
import { Environment } from "@aenv/sdk";
import { Pool } from "undici";
import { environment } from "../kit/environment.ts";
import { send } from "../load/exchange.ts";
import { rpc } from "../load/job.ts";
import { answerParent } from "../processes/answer.ts";
import { cpuUs, peakResidentBytes } from "../processes/usage.ts";
import type { Queries, Spent } from "./runner.ts";

export const CALLS = 10;
const agent = scriptedAgent(Array.from({ length: CALLS }, () => ({ tool: "add", arguments: { n: 1 } })));
const home = mkdtempSync(join(tmpdir(), "aenv-bench-"));
let open: Queries["open"];
let runs = 0;
let lastFolder: RunFolder | undefined;

// An exit handler, so that every end removes the runs.
process.once("SIGTERM", () => process.exit());
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
answerParent({ open: connect, play, requests, direct, journal, peakBytes: peakResidentBytes });

function connect(given: Queries["open"]): void {
  open = given;
}

/** Episodes as `aenv rollout` plays them, into a run folder. */
async function play({ episodes, concurrency }: Queries["play"]): Promise<Spent> {
  const { ref, controlUrl, dataUrl } = open;
  await using instances = new InstancePool({ environment: ref, options: { controlUrl, dataUrl }, environmentDigest: null });
  const cancel = new AbortController().signal;
  await prepare(instances, concurrency, cancel);
  const options = playOptions({
    agent,
    limits: {},
    deadlineMs: 10 * 60_000,
    acquire: (spec, signal) => instances.acquire(spec, signal),
    provenance: { model: null, client_version: "0" },
    cancel,
  });
  const folder = new RunFolder(home, `run-${runs++}`);
  lastFolder = folder;
  const common = { folder, settings: settingsOf(episodes), concurrency: new Concurrency({ max: concurrency }), retries: 0, cancel };
  return await spentBy(async () => {
    const { summary } = await playRun({ ...common, play: (spec) => playEpisode(spec, options) });
    if (summary.scored !== episodes || summary.reward?.mean !== CALLS) throw new Error(`wrong rewards: ${JSON.stringify(summary.reward)}`);
  });
}

/** Creates the instances, which the HTTP requests alone have before they are measured too. */
async function prepare(instances: InstancePool, count: number, signal: AbortSignal): Promise<void> {
  const spec = { id: "", run: null, attempt: 0, task: { id: null, split: null, index: null }, group: null, seed: 0, metadata: {} };
  const leases = await Promise.all(Array.from({ length: count }, () => instances.acquire(spec, signal)));
  await Promise.all(leases.map((lease) => lease.release(true)));
}

/** The HTTP requests of the same episodes, with the same headers and bodies, and nothing else. */
async function requests({ episodes, concurrency }: Queries["requests"]): Promise<Spent> {
  const { ref, controlUrl, dataUrl } = open;
  const batch = await Environment.createMany(ref, concurrency, { controlUrl, dataUrl });
  await using _ = batch;
  const ids = await Promise.all(batch.environments.map(async (env) => (await env.getEnvInfo()).instanceId));
  const pool = new Pool(dataUrl, { connections: concurrency, pipelining: 1 });
  const headers = { "content-type": "application/json", accept: "application/json" };
  const mcpHeaders = { ...headers, accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25" };
  const add = rpc("tools/call", { name: "add", arguments: { n: 1 } }, "");
  const list = rpc("tools/list", {}, "");
  let begun = 0;
  const lane = async (id: string) => {
    // The SDK names the instance by headers.
    const instance = { [names.proxyUrl]: `http://${id}:8081`, [names.instanceId]: id };
    const ownHeaders = { ...headers, ...instance };
    const ownMcpHeaders = { ...instance, ...mcpHeaders };
    const post = async (path: string, body: string | undefined, expect: string) => {
      const answered = await send(pool, "POST", path, body ?? "{}", path === "/mcp" ? ownMcpHeaders : ownHeaders);
      if (answered.status !== 200 || !answered.body.includes(expect)) throw new Error(`${path}: ${answered.status} ${answered.body}`);
    };
    while (begun++ < episodes) {
      await post("/task/reset", JSON.stringify({ task: null, seed: begun }), "true");
      await post("/mcp", list.body?.replaceAll("{n}", "0"), "add");
      for (let call = 1; call <= CALLS; call++) await post("/mcp", add.body?.replaceAll("{n}", String(call)), `sum is ${call}`);
      await post("/task/reward", "{}", String(CALLS));
    }
  };
  const spent = await spentBy(async () => {
    await Promise.all(ids.map(lane));
  });
  await pool.close();
  return spent;
}

/** The same tools and the same reward, called as functions. */
async function direct({ episodes }: Queries["direct"]): Promise<Spent> {
  const add = environment.tools?.find(({ name }) => name === "add");
  const [reward] = environment.rewards ?? [];
  return spentBy(async () => {
    for (let episode = 0; episode < episodes; episode++) {
      const state = { sum: 0 };
      for (let call = 0; call < CALLS; call++) await add?.run({ n: 1 } as never, { state } as never);
      if ((await reward?.score({ state, input: {} } as never)) !== CALLS) throw new Error("wrong reward");
    }
  });
}

/** How long it takes to write the trajectories of the last run once more, as many at once as in the run, and nothing else. */
async function journal({ concurrency }: Queries["journal"]): Promise<Spent> {
  if (lastFolder === undefined) throw new Error("journal comes after play");
  const all: Trajectory[] = [];
  for await (const one of lastFolder.trajectories()) all.push(one);
  await using writer = await TrajectoryWriter.open(join(home, `journal-${runs++}.jsonl`));
  return await spentBy(async () => {
    const rest = all.values();
    const lane = async () => {
      for (const one of rest) await writer.add(one);
    };
    await Promise.all(Array.from({ length: concurrency }, lane));
  });
}

async function spentBy(work: () => Promise<void>): Promise<Spent> {
  const startedAt = performance.now();
  const before = cpuUs();
  await work();
  return { ms: performance.now() - startedAt, cpuUs: cpuUs() - before };
}

function settingsOf(samples: number): RunSettings {
  return {
    format: "aenv.run.v1",
    environment: open.ref,
    environment_digest: null,
    variables: {},
    agent: { name: agent.name, settings: {} },
    model: null,
    split: null,
    tasks: [],
    samples,
    seed: 1,
    limits: {},
    records_digests: false,
    pass_reward: 1,
  };
}
