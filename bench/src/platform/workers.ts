import { availableParallelism } from "node:os";
import { cpuOf, echo, rateOf } from "../kit/calls.ts";
import { Load, type Target } from "../load/load.ts";
import { Pipeline } from "../load/pipeline.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report, Suite } from "../suite.ts";
import { type PlatformServer, startPlatformServer } from "./server.ts";
import { Trainer } from "./trainer.ts";

const ROUNDS = 15;
const LANES = 64;
const WARM_UP = { turns: 20_000, ms: 3_000 };
/** The system reports the CPU time of workers in steps of 10 ms. */
const ROUND = { turns: 20_000, ms: 1_000 };
/** Client, sandbox and two workers each need one. */
const CORES_FOR_CALLS = 4;

/** The data port in two workers, compared with one process. */
export const workers: Suite = {
  name: "workers",
  async run(report) {
    await using one = await startPlatformServer({ workers: 1 });
    await using two = await startPlatformServer({ workers: 2 });
    const targets = { one: await targetOf(one), two: await targetOf(two) };
    await compareCalls(report, targets);
    await compareOwnAnswers(report, { one: one.dataUrl, two: two.dataUrl });
  },
};

async function targetOf(server: PlatformServer): Promise<Target> {
  await using trainer = await Trainer.open(server);
  const { ids } = await trainer.query("create", { ref: await server.publish("ledger", "shared"), count: 1 });
  return { url: server.dataUrl, prefix: `/env-instance/${ids[0]}`, cpuUs: server.cpuUs };
}

async function compareCalls(report: Report, targets: { readonly one: Target; readonly two: Target }): Promise<void> {
  report.progress("tool calls through workers");
  await using load = new Load();
  const job = { lanes: LANES, steps: [echo] };
  const contenders = {
    one: (limits = ROUND) => load.measure(targets.one, job, limits),
    two: (limits = ROUND) => load.measure(targets.two, job, limits),
  };
  for (const warmUp of Object.values(contenders)) await warmUp(WARM_UP);
  const samples = await takeTurns(ROUNDS, contenders);
  report.add({
    name: `the server's CPU per call with 2 workers, concurrency ${LANES}`,
    value: cpuOf(samples.two),
    unit: "us",
    beside: { what: "with one process", value: cpuOf(samples.one) },
    aim: { of: "ratio", is: "at most", limit: 1.1 },
  });
  report.add({
    name: `calls with 2 workers to one sandbox, concurrency ${LANES}`,
    value: rateOf(samples.two),
    unit: "calls/s",
    beside: { what: "with one process", value: rateOf(samples.one) },
    // On fewer cores the client and the sandbox need all of them, and there is nothing to gain.
    ...(availableParallelism() >= CORES_FOR_CALLS && { aim: { of: "ratio", is: "at least", limit: 1 } as const }),
  });
}

/** Requests that need no sandbox, from a client that needs little CPU itself: so two cores are enough for the workers to gain. */
async function compareOwnAnswers(report: Report, urls: { readonly one: string; readonly two: string }): Promise<void> {
  report.progress("requests that workers answer themselves");
  await using one = await Pipeline.open(urls.one);
  await using two = await Pipeline.open(urls.two);
  const contenders = { one: () => one.measure(ROUND.ms), two: () => two.measure(ROUND.ms) };
  for (const warmUp of Object.values(contenders)) await warmUp();
  const samples = await takeTurns(ROUNDS, contenders);
  report.add({
    name: "requests that the gateway answers itself, with 2 workers",
    value: median(samples.two),
    unit: "requests/s",
    beside: { what: "with one process", value: median(samples.one) },
    ...(availableParallelism() >= 2 && { aim: { of: "ratio", is: "at least", limit: 1.2 } as const }),
  });
}
