import { cpuOf, echo, rateOf } from "../kit/calls.ts";
import { Load, type Target } from "../load/load.ts";
import { takeTurns } from "../rounds.ts";
import type { Report } from "../suite.ts";
import { originalLacks, startOriginal } from "./original.ts";

const ROUNDS = 7;
const WARM_UP = { turns: 20_000, ms: 2_000 };
const ROUND = { turns: 10_000, ms: 1_000 };

/**
 * The same tool in the original Python stack and in AEnv, by the same client with the handshake that the original requires.
 * `where` describes the path to AEnv, such as " through the gateway".
 */
export async function compareWithOriginal(report: Report, where: string, ours: Target): Promise<void> {
  const lacks = originalLacks();
  if (lacks !== null) {
    report.skip("beside the original Python stack", lacks);
    return;
  }
  await using python = await startOriginal();
  await using load = new Load();

  for (const lanes of [1, 64]) {
    report.progress(`beside Python at concurrency ${lanes}`);
    const job = { lanes, hasSession: true, steps: [echo] };
    const contenders = {
      python: (limits = ROUND) => load.measure(python, job, limits),
      ours: (limits = ROUND) => load.measure(ours, job, limits),
    };
    for (const warmUp of Object.values(contenders)) await warmUp(WARM_UP);
    const samples = await takeTurns(ROUNDS, contenders);
    const what = "the original Python stack";
    report.add({
      name: `echo tool${where} in a session, concurrency ${lanes}`,
      value: rateOf(samples.ours),
      unit: "calls/s",
      beside: { what, value: rateOf(samples.python) },
      // One caller at a time measures a round trip, not the maximum load.
      ...(lanes > 1 && { aim: { of: "ratio", is: "at least", limit: 10 } as const }),
    });
    report.add({
      name: `CPU per echo call${where} in a session, concurrency ${lanes}`,
      value: cpuOf(samples.ours),
      unit: "us",
      beside: { what, value: cpuOf(samples.python) },
    });
  }
}
