import { type Address, type LoadJob, rpc, type Step, toolCall } from "../load/job.ts";
import { Load, type Sample } from "../load/load.ts";
import { startServer } from "../processes/server.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";

const TEXT = "The quick brown fox jumps over the lazy dog.";
export const echo: Step = toolCall("echo", { text: TEXT }, TEXT);
const placeOrder = toolCall(
  "place_order",
  {
    customer: "Ada",
    address: { street: "Main Street 1", city: "Springfield", zip: "12345" },
    lines: [{ sku: "a-1", count: 2 }, { sku: "b-2" }, { sku: "c-3", count: 4 }],
  },
  '"structuredContent":{"id":"order-1","items":7',
);
const list = rpc("tools/list", {}, '"name":"place_order"');

const ROUNDS = 15;
const WARM_UP = { turns: 20_000, ms: 3_000 };
const ROUND = { turns: 10_000, ms: 400 };

export const servers = {
  bare: new URL("./servers/bare.ts", import.meta.url),
  kit: new URL("./servers/kit.ts", import.meta.url),
};

/** The cost of a tool call in the kit, compared with a server that only implements the transport. */
export async function measureCalls(report: Report): Promise<void> {
  await using bare = await startServer(servers.bare);
  await using kit = await startServer(servers.kit, ["hot"]);
  await using sdk = await startServer(servers.kit, ["cold"]);
  await using load = new Load();

  for (const lanes of [1, 64]) {
    report.progress(`tool calls at concurrency ${lanes}`);
    const job = (step: Step): Omit<LoadJob, keyof Address> => ({ lanes, steps: [step] });
    const contenders = {
      bare: (limits = ROUND) => load.measure(bare, job(echo), limits),
      echo: (limits = ROUND) => load.measure(kit, job(echo), limits),
      order: (limits = ROUND) => load.measure(kit, job(placeOrder), limits),
      list: (limits = ROUND) => load.measure(kit, job(list), limits),
      sdk: (limits = ROUND) => load.measure(sdk, job(echo), limits),
    };
    for (const warmUp of Object.values(contenders)) await warmUp(WARM_UP);
    const samples = await takeTurns(ROUNDS, contenders);

    const at = `concurrency ${lanes}`;
    const rate = (name: string, some: Sample[], what: string, others: Sample[]) =>
      report.add({ name: `${name}, ${at}`, value: rateOf(some), unit: "calls/s", beside: { what, value: rateOf(others) } });
    const cpu = (name: string, some: Sample[], what: string, others: Sample[]) => ({
      name: `CPU per ${name}, ${at}`,
      value: cpuOf(some),
      unit: "us",
      beside: { what, value: cpuOf(others) },
    });
    const besideBare = "bare node:http echo";
    rate("echo tool", samples.echo, besideBare, samples.bare);
    report.add({ ...cpu("echo call", samples.echo, besideBare, samples.bare), aim: { of: "ratio", is: "at most", limit: 2.5 } });
    report.add(cpu("call with nested zod input and output", samples.order, besideBare, samples.bare));
    report.add(cpu("tools/list", samples.list, besideBare, samples.bare));
    rate("echo tool through the MCP SDK", samples.sdk, "the kit's own path", samples.echo);
    report.add(cpu("echo call through the MCP SDK", samples.sdk, "the kit's own path", samples.echo));
  }
}

export function rateOf(samples: readonly Sample[]): number {
  return median(samples.map((sample) => sample.perSecond));
}

export function cpuOf(samples: readonly Sample[]): number {
  return median(samples.map((sample) => sample.cpuUsPerTurn));
}
