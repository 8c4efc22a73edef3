import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Sandbox } from "@aenv/sandbox";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { type BenchImage, PROGRAM } from "./image.ts";
import { Machine, millisecondsOf, runProgram } from "./machine.ts";
import type { Scale } from "./scale.ts";

const run = promisify(execFile);
const CREATED_AT_ONCE = 4;

/** What one living sandbox costs per command, and to stop and continue. */
export async function measureCommands(report: Report, image: BenchImage, { rounds, commands }: Scale): Promise<void> {
  report.progress("commands in a sandbox");
  // Started by runc, because `runc exec` finds no sandboxes of crun, and cannot enter the user namespace of one with its own users.
  await using machine = await Machine.open({ base: image.files, runcPath: "runc", users: "machine" });
  const sandbox = await machine.create();
  await using init = await machine.connect(sandbox);
  const root = join(machine.home, "oci/runtime/runc/state");
  const [container = ""] = await readdir(root);
  const freezes: number[] = [];
  const thaws: number[] = [];
  const times = await takeTurns(rounds, {
    init: async () => {
      const all: number[] = [];
      for (let n = 0; n < commands; n++) all.push(await millisecondsOf(() => init.run({ argv: [PROGRAM] })));
      return quantile(all, 0.5);
    },
    runc: () => millisecondsOf(() => run("runc", ["--root", root, "exec", container, PROGRAM])),
    freeze: async () => {
      freezes.push(await millisecondsOf(async () => sandbox.freezing?.freeze()));
      thaws.push(await millisecondsOf(async () => sandbox.freezing?.thaw()));
      return 0;
    },
  });
  report.add({
    name: "command in a sandbox through the init, p50",
    value: quantile(times.init, 0.5),
    unit: "ms",
    beside: { what: "runc exec", value: quantile(times.runc, 0.5) },
    aim: { of: "ratio", is: "at most", limit: 1 / 5 },
  });
  report.add({ name: "freeze, p50", value: quantile(freezes, 0.5), unit: "ms" });
  report.add({ name: "thaw, p50", value: quantile(thaws, 0.5), unit: "ms" });
}

/** Many sandboxes that live at the same time. */
export async function measureMany(report: Report, image: BenchImage, { live }: Scale): Promise<void> {
  report.progress(`${live} sandboxes at the same time`);
  await using machine = await Machine.open({ base: image.files });
  await (await machine.create()).destroy();
  const sandboxes: Sandbox[] = [];
  const lanes = Array.from({ length: CREATED_AT_ONCE }, async () => {
    while (sandboxes.length < live) sandboxes.push(await machine.create());
  });
  const took = await millisecondsOf(() => Promise.all(lanes));
  const used = await Promise.all(sandboxes.map(memoryOf));
  report.add({ name: `sandboxes created per second, ${CREATED_AT_ONCE} at a time`, value: (sandboxes.length * 1_000) / took, unit: "1/s" });
  report.add({ name: `memory of a sandbox, ${live} of them`, value: sum(used) / 2 ** 20 / sandboxes.length, unit: "MiB" });
  const times: number[] = [];
  for (const sandbox of sandboxes.filter((_, at) => at % 10 === 0)) {
    await using init = await machine.connect(sandbox);
    times.push(await millisecondsOf(() => runProgram(init)));
  }
  report.add({ name: `command through the init, ${live} sandboxes, p50`, value: quantile(times, 0.5), unit: "ms" });
  const ended = await millisecondsOf(async () => {
    const waiting = [...sandboxes];
    const ending = Array.from({ length: CREATED_AT_ONCE }, async () => {
      for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) await next.destroy();
    });
    await Promise.all(ending);
  });
  report.add({
    name: `sandboxes destroyed per second, ${CREATED_AT_ONCE} at a time`,
    value: (sandboxes.length * 1_000) / ended,
    unit: "1/s",
  });
}

/** What the kernel counts for the control group of a sandbox: its processes, its files in memory, and kernel memory. */
async function memoryOf({ pid }: Sandbox): Promise<number> {
  const groups = await readFile(`/proc/${pid}/cgroup`, "utf8");
  const [, first] = /^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$/m.exec(groups) ?? [];
  const [, second = ""] = /^0::(.*)$/m.exec(groups) ?? [];
  const file =
    first === undefined ? join("/sys/fs/cgroup", second, "memory.current") : join("/sys/fs/cgroup/memory", first, "memory.usage_in_bytes");
  return Number(await readFile(file, "utf8"));
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0);
}
