import type { SandboxRuntime, SandboxSpec, SnapshotFidelity } from "@aenv/sandbox";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import { dockerRun, startDockerWithNetwork } from "./docker.ts";
import { type BenchImage, PROGRAM } from "./image.ts";
import { Machine, millisecondsOf, runProgram } from "./machine.ts";
import type { Scale } from "./scale.ts";

/** From the request to the first line of a command in a new sandbox, and how long it takes to remove it. */
export async function measureStarts(report: Report, image: BenchImage, { rounds }: Scale): Promise<void> {
  report.progress("create to first command");
  await using docker = await startDockerWithNetwork();
  const name = await image.importInto(docker.socket);
  await using cold = await Machine.open({ base: image.files, poolSize: 0, runcPath: "crun" });
  await using slower = await Machine.open({ base: image.files, poolSize: 0, runcPath: "runc" });
  await using pooled = await Machine.open({ base: image.files, poolSize: 1, runcPath: "crun" });
  await using waiting = await Machine.open({ base: image.files, poolSize: 1, runcPath: "crun" });
  const removals: Record<SandboxRuntime, number[]> = { runc: [], runsc: [] };
  const start = async (machine: Machine, more: Partial<SandboxSpec> & { readonly runtime: SandboxRuntime }) => {
    const { tookMs, removedMs } = await firstCommand(machine, more);
    removals[more.runtime].push(removedMs);
    // What is created for the next start must not slow down the other contenders.
    await machine.engine.fillPools();
    return tookMs;
  };
  const [unprepared, prepared] = [await snapshotOf(cold, "runsc", "memory"), await snapshotOf(pooled, "runsc", "memory")];
  const contenders = {
    docker: () => dockerRun(docker.socket, name, PROGRAM),
    unconnected: () => dockerRun(docker.socket, name, PROGRAM, ["--network", "none"]),
    runc: () => start(cold, { runtime: "runc" }),
    slower: () => start(slower, { runtime: "runc" }),
    pool: () => start(pooled, { runtime: "runc" }),
    // The files of a new snapshot are as unknown to the engine as a new image.
    filled: async () => start(waiting, { runtime: "runc", snapshot: await snapshotOf(waiting, "runc", "files") }),
    runsc: () => start(cold, { runtime: "runsc" }),
    runscFilled: async () => start(waiting, { runtime: "runsc", snapshot: await snapshotOf(waiting, "runsc", "files") }),
    runscPool: () => start(pooled, { runtime: "runsc" }),
    copied: () => start(pooled, { runtime: "runsc", snapshot: prepared }),
    // Copies that wait are not for those who create ahead.
    restored: () => start(pooled, { runtime: "runsc", snapshot: prepared, isAhead: true }),
    restoredCold: () => start(cold, { runtime: "runsc", snapshot: unprepared }),
  };
  await takeTurns(2, contenders);
  for (const times of Object.values(removals)) times.length = 0;
  const times = await takeTurns(rounds, contenders);
  const add = (what: string, timesMs: readonly number[], limit?: number) =>
    report.add({
      name: `create to first command, ${what}, p50`,
      value: quantile(timesMs, 0.5),
      unit: "ms",
      beside: { what: "docker run of the same image", value: quantile(times.docker, 0.5) },
      ...(limit !== undefined && { aim: { of: "ratio", is: "at most", limit } }),
    });
  // All sandboxes of the oci engine have a network: this is not what they are to be compared with, but what docker needs without one.
  add("docker run --network none", times.unconnected);
  add("oci with runc (crun)", times.runc, 1 / 8);
  add("oci with runc (runc itself)", times.slower);
  add("oci with runc, first of its files, in a sandbox that waited without any", times.filled, 1 / 8);
  add("oci with runc, from the pool", times.pool, 1 / 40);
  add("oci with runsc", times.runsc, 1 / 2.5);
  add("oci with runsc, first of its files, in a sandbox that waited without any", times.runscFilled, 1 / 2.5);
  add("oci with runsc, from the pool", times.runscPool);
  add("oci with runsc, from a snapshot of memory, in a copy that waited", times.copied, 1 / 3);
  add("oci with runsc, from a snapshot of memory, restored in a container that waited", times.restored, 1 / 3);
  add("oci with runsc, from a snapshot of memory, nothing prepared", times.restoredCold);
  for (const runtime of ["runc", "runsc"] as const)
    report.add({ name: `destroy, oci with ${runtime}, p50`, value: quantile(removals[runtime], 0.5), unit: "ms" });
}

/** A snapshot of a sandbox in which nothing runs but the init. */
async function snapshotOf(machine: Machine, runtime: SandboxRuntime, fidelity: SnapshotFidelity): Promise<string> {
  const sandbox = await machine.create({ runtime });
  const snapshot = await sandbox.snapshots?.take(fidelity, new AbortController().signal);
  await sandbox.destroy();
  await machine.engine.fillPools();
  if (snapshot === undefined) throw new Error(`the oci engine stores no ${fidelity}`);
  return snapshot.id;
}

async function firstCommand(machine: Machine, more: Partial<SandboxSpec>): Promise<{ tookMs: number; removedMs: number }> {
  const start = performance.now();
  const sandbox = await machine.create(more);
  const init = await machine.connect(sandbox);
  await runProgram(init);
  const tookMs = performance.now() - start;
  await init.close();
  return { tookMs, removedMs: await millisecondsOf(() => sandbox.destroy()) };
}
