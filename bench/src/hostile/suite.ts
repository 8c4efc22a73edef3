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
    for (const [name, kind] of Object.entries({ "200 tool calls a second": QUIET, "tool calls, concurrency 64,": BUSY })) {
      report.progress(`${name} beside hostile and honest parties`);
      const samples = await takeTurns(ROUNDS, {
        alone: beside(null, kind),
        honest: beside("honest", kind),
        hostile: beside("hostile", kind),
      });
      const honest = p99(samples.honest);
      report.add({
        name: `p99 of ${name} beside hostile parties`,
        value: p99(samples.hostile),
        unit: "ms",
        beside: { what: "beside as many honest rollouts of the same owner", value: honest },
        aim: { of: "ratio", is: "at most", limit: 2 },
      });
      const beforeThat = { what: "with nobody else", value: p99(samples.alone) };
      report.add({ name: `p99 of ${name} beside honest parties`, value: honest, unit: "ms", beside: beforeThat });
    }
    report.progress(`${rollouts} rollouts beside the calls; those of hostile parties have no score`);
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
