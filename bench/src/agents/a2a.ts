import { existsSync } from "node:fs";
import { cpuOf, echo, servers } from "../kit/calls.ts";
import { type Address, type LoadJob, rpc, type Step } from "../load/job.ts";
import { Load, type Sample } from "../load/load.ts";
import { startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { startServer } from "../processes/server.ts";
import { takeTurns } from "../rounds.ts";
import { median, quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";

const TEXT = "The quick brown fox jumps over the lazy dog.";
const message = { messageId: "m{n}", role: "ROLE_USER", parts: [{ data: { tool: "echo", arguments: { text: TEXT } } }] };
/** The call of `echo` as a message, which is answered when its task has ended. */
const send: Step = rpc("SendMessage", { message }, "TASK_STATE_COMPLETED", "/a2a?A2A-Version=1.0");

const WARM_UP = { turns: 5_000, ms: 2_000 };
const SDK_SERVER = new URL("./servers/a2a-sdk.ts", import.meta.url);
const SDK_FOLDER = new URL("../../../interop/node_modules/@a2a-js/sdk", import.meta.url);

/** How much is measured. */
export interface CallScale {
  readonly rounds: number;
  readonly round: { readonly turns: number; readonly ms: number };
}
export const CALLS: CallScale = { rounds: 15, round: { turns: 10_000, ms: 400 } };

/** A call over A2A through a server, beside the same call over MCP; and its cost in the sandbox, beside the SDK's own server. */
export async function measureA2a(report: Report, scale: CallScale = CALLS): Promise<void> {
  await using load = new Load();
  await measureThroughServer(report, load, scale);
  if (existsSync(SDK_FOLDER)) await measureBesideSdk(report, load, scale);
  else report.skip("a server on @a2a-js/sdk", "it is missing: npm ci --prefix interop");
}

async function measureThroughServer(report: Report, load: Load, { rounds, round }: CallScale): Promise<void> {
  report.progress("the same call over A2A and over MCP");
  await using server = await startPlatformServer();
  await using trainer = await Trainer.open(server);
  const { ids } = await trainer.query("create", { ref: await server.publish("ledger", "shared"), count: 1 });
  const target = { url: server.dataUrl, prefix: `/env-instance/${ids[0]}`, cpuUs: server.cpuUs };
  const calls = {
    a2a: (limits = round) => load.measure(target, job(send), limits),
    mcp: (limits = round) => load.measure(target, job(echo), limits),
  };
  for (const warmUp of Object.values(calls)) await warmUp(WARM_UP);
  const { a2a, mcp } = await takeTurns(rounds, calls);
  report.add({
    name: "a call over A2A through a server, p50",
    value: p50(a2a),
    unit: "ms",
    beside: { what: "the same call over MCP", value: p50(mcp) },
    aim: { of: "ratio", is: "at most", limit: 1.5 },
  });
}

async function measureBesideSdk(report: Report, load: Load, { rounds, round }: CallScale): Promise<void> {
  report.progress("the same call to a server on @a2a-js/sdk");
  await using kit = await startServer(servers.kit, ["hot"]);
  await using sdk = await startServer(SDK_SERVER);
  const calls = {
    kit: (limits = round) => load.measure(kit, job(send), limits),
    mcp: (limits = round) => load.measure(kit, job(echo), limits),
    sdk: (limits = round) => load.measure(sdk, job({ ...send, path: "/" }), limits),
  };
  for (const warmUp of Object.values(calls)) await warmUp(WARM_UP);
  const samples = await takeTurns(rounds, calls);
  const value = cpuOf(samples.kit);
  report.add({
    name: "CPU of a call over A2A in a sandbox",
    value,
    unit: "us",
    beside: { what: "the server of @a2a-js/sdk, on express", value: cpuOf(samples.sdk) },
    aim: { of: "ratio", is: "at most", limit: 0.5 },
  });
  report.add({
    name: "CPU of a call over A2A in a sandbox, and MCP",
    value,
    unit: "us",
    beside: { what: "over MCP", value: cpuOf(samples.mcp) },
  });
}

function job(step: Step): Omit<LoadJob, keyof Address> {
  return { lanes: 1, steps: [step] };
}

/** The median over rounds, so that a moment in which the machine does something else does not decide. */
function p50(samples: readonly Sample[]): number {
  return median(samples.map(({ latenciesMs }) => quantile(latenciesMs, 0.5)));
}
