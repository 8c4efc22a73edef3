import { buildBundle } from "../kit/bundle.ts";
import { projects, startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { VARIABLES } from "./data.ts";
import { findReference } from "./reference.ts";
import type { Scale } from "./scale.ts";
import { World } from "./world.ts";

/** Raises the default rate limit per owner, which is lower than this suite needs. */
const SETTINGS = { createsPerSecond: 1_000_000 };

/** Golden actions per second in fresh worlds, called directly, without HTTP; compared with the Python reference if it is installed. */
export async function measureDirect(report: Report, { rounds, directMs }: Scale): Promise<void> {
  const reference = await findReference();
  if (typeof reference === "string") report.skip("golden actions beside the Python reference", reference);
  for (const name of ["airline", "retail", "telecom"]) {
    report.progress(`golden actions of ${name} in one process`);
    await using world = await World.open(name);
    const ours = () => world.query("direct", { ms: directMs });
    await ours();
    const row = { name: `golden actions of ${name}, in one process`, unit: "calls/s" };
    if (typeof reference === "string") {
      const rates = await takeTurns(rounds, { ours });
      report.add({ ...row, value: median(rates.ours) });
      continue;
    }
    const rates = await takeTurns(Math.ceil(rounds / 3), { ours, reference: () => reference.rate(name) });
    const beside = { what: "the Python reference", value: median(rates.reference) };
    report.add({ ...row, value: median(rates.ours), beside, aim: { of: "ratio", is: "at least", limit: 10 } });
  }
}

/** The same over MCP through the gateway, compared with direct calls to a sandbox of the same bundle. */
export async function measureGateway(report: Report, { rounds, episodes }: Scale): Promise<void> {
  await using world = await World.open("airline");
  const callSequences = (await world.query("callSequences", undefined)).filter((sequence) => sequence.length > 0);
  await using bundle = await buildBundle(projects.tau2);
  await using sandbox = await bundle.start(undefined, VARIABLES);
  await using server = await startPlatformServer(SETTINGS);
  const ref = await server.publish("tau2", "shared");
  await using throughGateway = await Trainer.open(server, { variables: VARIABLES, callSequences });
  await using pastGateway = await Trainer.open({ controlUrl: sandbox.url, dataUrl: sandbox.url }, { variables: VARIABLES, callSequences });

  for (const lanes of [1, 64]) {
    report.progress(`golden actions of airline through the gateway at concurrency ${lanes}`);
    const rateOf = async (trainer: Trainer, ref: string | null) => {
      const { ids } = await trainer.query("create", { ref, count: episodes });
      const { calls, ms, wrong } = await trainer.query("runEach", { ids, lanes });
      await trainer.query("end", { ids });
      if (wrong > 0) throw new Error(`${wrong} of ${calls} answers were wrong`);
      return (calls * 1_000) / ms;
    };
    const contenders = { gateway: () => rateOf(throughGateway, ref), direct: () => rateOf(pastGateway, null) };
    for (const warmUp of Object.values(contenders)) await warmUp();
    const rates = await takeTurns(rounds, contenders);
    report.add({
      name: `golden actions of airline over MCP through the gateway, concurrency ${lanes}`,
      value: median(rates.gateway),
      unit: "calls/s",
      beside: { what: "direct to a sandbox of the same bundle", value: median(rates.direct) },
      ...(lanes > 1 && { aim: { of: "ratio", is: "at least", limit: 0.6 } as const }),
    });
  }
}
