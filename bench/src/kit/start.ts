import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { toolCall } from "../load/job.ts";
import { Load } from "../load/load.ts";
import { own } from "../processes/own.ts";
import { foreignResidentBytes } from "../processes/usage.ts";
import { takeTurns } from "../rounds.ts";
import { median } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { type Bundle, buildBundle } from "./bundle.ts";

const START_ROUNDS = 31;
const MEMORY_ROUNDS = 5;
const CALLS = 10_000;

/** Start time and memory of a bundled environment. */
export async function measureStart(report: Report): Promise<void> {
  report.progress("starts of a bundled environment");
  await using bundle = await buildBundle();
  const startsMs = await takeTurns(START_ROUNDS, {
    bundle: async () => {
      await using sandbox = await bundle.start();
      return sandbox.startMs;
    },
    node: startBareNode,
  });
  report.add({
    name: "start of a bundled environment to its first healthy answer",
    value: median(startsMs.bundle),
    unit: "ms",
    beside: { what: "node -e 0, start to end", value: median(startsMs.node) },
    aim: { of: "value", is: "at most", limit: 150 },
  });

  if (!existsSync("/proc/self/status")) {
    report.skip("resident memory", "it is read from /proc, which only Linux has");
    return;
  }
  report.progress("resident memory of a bundled environment");
  const residentBytes = await takeTurns(MEMORY_ROUNDS, { bundle: () => sandboxMemory(bundle), node: bareNodeMemory });
  const beside = { what: "an idle node -e", value: mib(residentBytes.node.map((one) => one.idle)) };
  report.add({
    name: "resident memory, idle",
    value: mib(residentBytes.bundle.map((one) => one.idle)),
    unit: "MiB",
    beside,
  });
  report.add({
    name: "resident memory after 10,000 calls",
    value: mib(residentBytes.bundle.map((one) => one.afterCalls)),
    unit: "MiB",
    beside,
  });
}

async function startBareNode(): Promise<number> {
  const from = performance.now();
  await once(spawn(process.execPath, ["-e", "0"], { stdio: "ignore" }), "exit");
  return performance.now() - from;
}

async function sandboxMemory(bundle: Bundle): Promise<{ idle: number; afterCalls: number }> {
  await using sandbox = await bundle.start();
  await using load = new Load();
  const idle = await foreignResidentBytes(sandbox.pid);
  const echo = toolCall("echo", { text: "hello" }, "hello");
  await load.measure(sandbox, { lanes: 8, steps: [echo] }, { turns: CALLS, ms: 60_000 });
  return { idle, afterCalls: await foreignResidentBytes(sandbox.pid) };
}

async function bareNodeMemory(): Promise<{ idle: number; afterCalls: number }> {
  const node = spawn(process.execPath, ["-e", "process.stdout.write('up'); setInterval(() => {}, 60_000)"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const stop = own(node);
  await once(node.stdout, "data");
  const idle = await foreignResidentBytes(node.pid as number);
  await stop();
  return { idle, afterCalls: idle };
}

function mib(bytes: readonly number[]): number {
  return median(bytes) / 2 ** 20;
}
