import type { SandboxSpec } from "@aenv/sandbox";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { dockerRun } from "./docker.ts";
import { type BenchImage, PROGRAM } from "./image.ts";
import { Machine, runProgram } from "./machine.ts";
import type { Scale } from "./scale.ts";

/** From the request to the first line of a command in a new sandbox, and how long it takes to remove it. */
export async function measureStarts(report: Report, image: BenchImage, socket: string, { rounds }: Scale): Promise<void> {
  report.progress("create to first command");
  const name = await image.importInto(socket);
  await using cold = await Machine.open({ base: image.files, poolSize: 0 });
  await using pooled = await Machine.open({ base: image.files, poolSize: 2 });
  const removals: number[] = [];
  const start = (machine: Machine, more: Partial<SandboxSpec> = {}) => firstCommand(machine, more, removals);

  const contenders = {
    docker: () => dockerRun(socket, name, PROGRAM),
    runc: () => start(cold),
    pool: () => start(pooled),
    runsc: () => start(cold, { runtime: "runsc" }),
  };
  const snapshot = await memorySnapshot(cold);
  const restored = async () => (snapshot === null ? 0 : start(cold, { runtime: "runsc", snapshot }));
  await takeTurns(2, { ...contenders, restored });
  removals.length = 0;
  const times = await takeTurns(rounds, { ...contenders, restored });
  const add = (what: string, timesMs: readonly number[], limit: number) =>
    report.add({
      name: `create to first command, ${what}, p50`,
      value: quantile(timesMs, 0.5),
      unit: "ms",
      beside: { what: "docker run of the same image", value: quantile(times.docker, 0.5) },
      aim: { of: "ratio", is: "at most", limit },
    });
  add("oci with runc", times.runc, 1 / 8);
  add("oci with runc, from the pool", times.pool, 1 / 40);
  add("oci with runsc", times.runsc, 1 / 2.5);
  if (snapshot === null) report.skip("create from a snapshot of memory", "the oci engine takes none");
  else add("oci with runsc, from a snapshot of memory", times.restored, 1 / 3);
  report.add({ name: "destroy, p50", value: quantile(removals, 0.5), unit: "ms" });
}

/** A snapshot of a sandbox in which nothing runs but the init. */
async function memorySnapshot(machine: Machine): Promise<string | null> {
  if (!machine.engine.can.snapshots.includes("memory")) return null;
  const sandbox = await machine.create({ runtime: "runsc" });
  const snapshot = await sandbox.snapshot?.("memory", new AbortController().signal);
  await sandbox.destroy();
  return snapshot?.id ?? null;
}

async function firstCommand(machine: Machine, more: Partial<SandboxSpec>, removals: number[]): Promise<number> {
  const start = performance.now();
  const sandbox = await machine.create(more);
  const init = await machine.connect(sandbox);
  await runProgram(init);
  const took = performance.now() - start;
  await init.close();
  const removing = performance.now();
  await sandbox.destroy();
  removals.push(performance.now() - removing);
  return took;
}
