import { echo } from "../kit/calls.ts";
import { Load, type Sample, type Target } from "../load/load.ts";
import { type PlatformServer, startPlatformServer } from "../platform/server.ts";
import { Child } from "../processes/child.ts";
import { takeTurns } from "../rounds.ts";
import { median, quantile } from "../statistics.ts";
import type { Suite } from "../suite.ts";
import type { AttackerOptions, Conduct } from "./attacker.ts";

const ROUNDS = 9;
const WARM_UP = { turns: 20_000, ms: 3_000 };
/** Calls that follow each other without a pause: the server is busy with them. */
const BUSY = { job: { lanes: 64, steps: [echo] }, limits: { turns: 100_000, ms: 3_000 } };
/** 200 calls a second, of a server that is idle between them: every moment in which it does something else is seen. */
const QUIET = { job: { lanes: 16, everyMs: 5, steps: [echo] }, limits: { turns: 600, ms: 6_000 } };

/** The calls of one owner while another one's model endpoints and environment are hostile. */
export const hostile: Suite = {
  name: "hostile",
  async run(report) {
    await using server = await startPlatformServer({ access: "on" });
    const { controlUrl, dataUrl } = server;
    const target = await targetOf(server);
    await using attacker = new Child(new URL("./attacker.ts", import.meta.url));
    await attacker.query("open", { controlUrl, dataUrl, headers: await server.token("mallory") } satisfies AttackerOptions);
    await using load = new Load();
    let rollouts = 0;
    const beside =
      (conduct: Conduct | null, { job, limits }: typeof BUSY | typeof QUIET) =>
      async () => {
        if (conduct !== null) await attacker.query("start", conduct);
        const sample = await load.measure(target, job, limits);
        if (conduct !== null) rollouts += await attacker.query<number>("stop");
        return sample;
      };
    await load.measure(target, BUSY.job, WARM_UP);
    const samples = await takeTurns(ROUNDS, {
      busyAlone: beside(null, BUSY),
      busyHostile: beside("hostile", BUSY),
      quietAlone: beside(null, QUIET),
      quietHonest: beside("honest", QUIET),
      quietHostile: beside("hostile", QUIET),
    });
    report.progress(`${rollouts} rollouts beside the calls; those of hostile parties have no score`);
    report.add({
      name: "p99 of tool calls beside hostile parties, concurrency 64",
      value: p99(samples.busyHostile),
      unit: "ms",
      beside: { what: "without them", value: p99(samples.busyAlone) },
      aim: { of: "ratio", is: "at most", limit: 2 },
    });
    report.add({
      name: "p99 of 200 tool calls a second beside hostile parties",
      value: p99(samples.quietHostile),
      unit: "ms",
      beside: { what: "beside honest ones, with rollouts of the same owner", value: p99(samples.quietHonest) },
      aim: { of: "ratio", is: "at most", limit: 2 },
    });
    report.add({
      name: "p99 of 200 tool calls a second beside honest parties",
      value: p99(samples.quietHonest),
      unit: "ms",
      beside: { what: "without them", value: p99(samples.quietAlone) },
    });
    report.add({
      name: "peak memory of the server beside hostile parties",
      value: (await server.peakBytes()) / 1_024 ** 2,
      unit: "MB",
      aim: { of: "value", is: "at most", limit: 600 },
    });
  },
};

/** The median of the rounds, so that a moment in which the machine does something else does not decide. */
function p99(samples: readonly Sample[]): number {
  return median(samples.map(({ latenciesMs }) => quantile(latenciesMs, 0.99)));
}

async function targetOf(server: PlatformServer): Promise<Target> {
  const headers = { ...(await server.token("ada")), "content-type": "application/json" };
  const envName = await server.publish("ledger", "shared", {}, headers);
  const response = await fetch(`${server.controlUrl}/env-instance`, { method: "POST", headers, body: JSON.stringify({ envName }) });
  const { data } = (await response.json()) as { data: { id: string } };
  return { url: server.dataUrl, prefix: `/env-instance/${data.id}`, cpuUs: server.cpuUs };
}
