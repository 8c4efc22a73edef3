import { type Step, toolCall } from "../load/job.ts";
import { Load } from "../load/load.ts";
import { type Server, startServer } from "../processes/server.ts";
import { takeTurns } from "../rounds.ts";
import { median, quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { echo, servers } from "./calls.ts";

const COUNT = 10_000;
const ALL = { turns: COUNT, ms: 120_000 };
const LANES = 64;

// The number makes each answer unique: a lost or mixed-up instance fails the run.
const create: Step = { method: "POST", path: "/env-instance", body: '{"id":"i-{n}"}', expect: '"id":"i-{n}"' };
const destroy: Step = { method: "DELETE", path: "/env-instance/i-{n}", expect: '"success":true' };
const firstCall = toolCall("add", { n: "{n}" }, "sum is {n}", "/env-instance/i-{n}/mcp");

/** Many instances in one process: rates of creation, calls and deletion, and memory for each. */
export async function measureInstances(report: Report): Promise<void> {
  await measureMany(report);
  await measureFirstResult(report);
  await measureFork(report);
}

async function measureMany(report: Report): Promise<void> {
  report.progress(`${COUNT.toLocaleString("en")} instances in one process`);
  await using host = await startServer(servers.kit, ["hot"], ["--expose-gc"]);
  // Warm-up: code that is compiled and data that is cached once is not counted.
  await liveAndDie(host);
  const { before, full, after, rates } = await liveAndDie(host);

  const many = "of 10,000 instances in one process, over HTTP at concurrency 64";
  report.add({ name: `creates ${many}`, value: rates.create, unit: "instances/s" });
  report.add({ name: `first calls ${many}`, value: rates.call, unit: "calls/s" });
  report.add({ name: `ends ${many}`, value: rates.destroy, unit: "instances/s" });
  report.add({
    name: "heap of one of 10,000 trivial instances",
    value: (full.heapBytes - before.heapBytes) / COUNT,
    unit: "bytes",
  });
  report.add({
    name: "heap after 10,000 instances have come and gone",
    value: after.heapBytes / 2 ** 20,
    unit: "MiB",
    beside: { what: "before", value: before.heapBytes / 2 ** 20 },
    aim: { of: "ratio", is: "at most", limit: 1.1 },
  });
}

async function liveAndDie(host: Server) {
  // A new load process each time: it counts its turns, and so the instances, from 0.
  const measure = async (step: Step) => {
    await using load = new Load();
    const { perSecond, turns } = await load.measure(host, { lanes: LANES, steps: [step] }, ALL);
    if (turns !== COUNT) throw new Error(`only ${turns} of ${COUNT} turns were done in time`);
    return perSecond;
  };
  const before = await host.memory();
  const createRate = await measure(create);
  const callRate = await measure(firstCall);
  const full = await host.memory();
  const destroyRate = await measure(destroy);
  const after = await host.memory();
  return { before, full, after, rates: { create: createRate, call: callRate, destroy: destroyRate } };
}

/** The start of an episode: from the create request to the first tool result. */
async function measureFirstResult(report: Report): Promise<void> {
  report.progress("create to first tool result");
  await using host = await startServer(servers.kit, ["hot"]);
  await using bare = await startServer(servers.bare);
  await using load = new Load();
  const round = { turns: 500, ms: 10_000 };
  const contenders = {
    host: (limits = round) => load.measure(host, { lanes: 1, steps: [create, firstCall] }, limits),
    bare: (limits = round) => load.measure(bare, { lanes: 1, steps: [echo, echo] }, limits),
  };
  for (const warmUp of Object.values(contenders)) await warmUp();
  const samples = await takeTurns(6, contenders);
  const hostMs = samples.host.flatMap((sample) => sample.latenciesMs);
  const bareMs = samples.bare.flatMap((sample) => sample.latenciesMs);
  for (const { share, limit } of [
    { share: 0.5, limit: 5 },
    { share: 0.99, limit: 25 },
  ]) {
    report.add({
      name: `create to first tool result in a packed host, p${share * 100}`,
      value: quantile(hostMs, share),
      unit: "ms",
      beside: { what: "two calls of the bare node:http echo", value: quantile(bareMs, share) },
      aim: { of: "value", is: "at most", limit },
    });
  }
}

/** Forks of a prepared state, compared with the same number of setups. */
async function measureFork(report: Report): Promise<void> {
  report.progress("fork x 32");
  await using host = await startServer(servers.kit, ["shop"]);
  await using load = new Load();
  const fork: Step = { method: "POST", path: "/env-instance/default/fork", body: '{"count":32}', expect: '"status":"Running"' };
  const ship = toolCall("ship", { id: "order-7" }, "shipped");
  await load.measure(host, { lanes: 1, steps: [ship] }, { turns: 1, ms: 10_000 });
  const measure = async (step: Step, turns: number) => {
    const { elapsedMs } = await load.measure(host, { lanes: 1, steps: [step] }, { turns, ms: 10_000 });
    await clear(host);
    return elapsedMs;
  };
  const elapsedMs = await takeTurns(19, { fork: () => measure(fork, 1), create: () => measure(create, 32) });
  // The first rounds run code that is not compiled yet.
  report.add({
    name: "fork x 32 of a prepared environment (1,000 orders), in all",
    value: median(elapsedMs.fork.slice(4)),
    unit: "ms",
    beside: { what: "32 creates that set the same up", value: median(elapsedMs.create.slice(4)) },
    aim: { of: "value", is: "at most", limit: 200 },
  });
}

/** Ends all instances but the first: a growing heap would slow down the later rounds. */
async function clear({ url }: Server): Promise<void> {
  const { data } = (await (await fetch(`${url}/env-instance/list`)).json()) as { data: { items: { id: string }[] } };
  for (const { id } of data.items) if (id !== "default") await fetch(`${url}/env-instance/${id}`, { method: "DELETE" });
}
