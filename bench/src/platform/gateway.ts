import { buildBundle } from "../kit/bundle.ts";
import { cpuOf, echo, rateOf } from "../kit/calls.ts";
import { Load, type Sample, type Target } from "../load/load.ts";
import { compareWithOriginal } from "../original/compare.ts";
import { foreignCpuUs } from "../processes/usage.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { projects, startPlatformServer } from "./server.ts";
import { Trainer } from "./trainer.ts";

/** Single rounds vary by a fifth on two cores, so the median needs many. */
const ROUNDS = 41;
const WARM_UP = { turns: 20_000, ms: 3_000 };
const ROUND = { turns: 10_000, ms: 400 };

/** Latency and throughput of tool calls through the gateway, compared with direct calls to a sandbox of the same bundle. */
export async function measureGateway(report: Report): Promise<void> {
  await using bundle = await buildBundle(projects.ledger);
  await using direct = await bundle.start();
  await using server = await startPlatformServer();
  await using trainer = await Trainer.open(server);
  const ref = await server.publish("ledger", "shared");
  const { ids } = await trainer.query("create", { ref, count: 1 });
  const gateway: Target = { url: server.dataUrl, prefix: `/env-instance/${ids[0]}`, cpuUs: server.cpuUs };
  await compareWays(report, gateway, direct);

  const sandbox = await busiest(await server.sandboxes());
  const cpuUs = async () => (await server.cpuUs()) + (await foreignCpuUs(sandbox));
  await compareWithOriginal(report, " through the gateway", { ...gateway, cpuUs });
}

/** The process that handled the calls; the others only wait in the pool. */
async function busiest(pids: readonly number[]): Promise<number> {
  const used = await Promise.all(pids.map((pid) => foreignCpuUs(pid).catch(() => 0)));
  return pids[used.indexOf(Math.max(...used))] as number;
}

async function compareWays(report: Report, gateway: Target, direct: Target): Promise<void> {
  await using load = new Load();
  for (const lanes of [1, 64]) {
    report.progress(`the gateway at concurrency ${lanes}`);
    const job = { lanes, steps: [echo] };
    const contenders = {
      direct: (limits = ROUND) => load.measure(direct, job, limits),
      gateway: (limits = ROUND) => load.measure(gateway, job, limits),
    };
    for (const warmUp of Object.values(contenders)) await warmUp(WARM_UP);
    const samples = await takeTurns(ROUNDS, contenders);

    // With one call at a time this is the gateway's latency; with many it includes queueing for two cores.
    const isAlone = lanes === 1;
    for (const { share, limit } of [
      { share: 0.5, limit: 1 },
      { share: 0.99, limit: 5 },
    ]) {
      const [through, past] = [latency(samples.gateway, share), latency(samples.direct, share)];
      report.add({
        name: `added by the gateway to a call, concurrency ${lanes}, p${share * 100}`,
        value: through - past,
        unit: "ms",
        beside: { what: "the direct call itself", value: past },
        ...(isAlone && { aim: { of: "value", is: "at most", limit } as const }),
      });
    }
    report.add({
      name: `calls through the gateway, concurrency ${lanes}`,
      value: rateOf(samples.gateway),
      unit: "calls/s",
      beside: { what: "direct to a sandbox of the same bundle", value: rateOf(samples.direct) },
      ...(!isAlone && { aim: { of: "ratio", is: "at least", limit: 0.6 } as const }),
    });
    report.add({
      name: `the server's CPU per proxied call, concurrency ${lanes}`,
      value: cpuOf(samples.gateway),
      unit: "us",
      beside: { what: "the sandbox's own per direct call", value: cpuOf(samples.direct) },
    });
  }
}

function latency(samples: readonly Sample[], share: number): number {
  return quantile(
    samples.flatMap((sample) => sample.latenciesMs),
    share,
  );
}
