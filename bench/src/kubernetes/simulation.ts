import type { ApiCounters } from "@aenv/sandbox";
import { Child } from "../processes/child.ts";
import type { Memory } from "../processes/usage.ts";
import type { Report } from "../suite.ts";
import type { BenchCluster } from "./cluster.ts";
import { simulateNodes } from "./kwok.ts";

/** Starts that run at the same time: about those of three servers with the default `startsAtOnce`. */
const LANES = 200;
const WRITES = ["create", "update", "patch", "delete"];
const READS = ["get", "list"];

/** So many pods, created, watched and deleted by the engine, on nodes that kwok simulates beside a real API server and scheduler. */
export async function measureSimulation(
  report: Report,
  { kubeconfig, namespace }: BenchCluster,
  kwok: string,
  pods: number,
): Promise<void> {
  report.progress(`${pods} simulated pods`);
  await using nodes = await simulateNodes(kwok, kubeconfig, pods);
  await using engine = new Child(
    new URL("./simulated-engine.ts", import.meta.url),
    [kubeconfig, namespace, JSON.stringify(nodes.podSpec)],
    { nodeOptions: ["--expose-gc"], endBy: "SIGTERM" },
  );
  const memory = () => engine.query<Memory>("memory");
  const cpuUs = () => engine.query<number>("cpuUs");
  await engine.query("create", { count: 1, lanes: 1 });
  const before = await memory();

  const half = Math.floor(pods / 2);
  const marks = [await cpuUs()];
  const timesMs: number[] = [];
  for (const count of [half, pods - 1 - half]) {
    timesMs.push(await engine.query<number>("create", { count, lanes: LANES }));
    marks.push(await cpuUs());
  }
  const after = await memory();
  const { Running: running } = await engine.query<{ Running: number }>("phases");
  if (running !== pods) throw new Error(`of ${pods} simulated pods, ${running} run`);
  report.progress(`${pods} simulated pods: delete`);
  const deleteMs = await engine.query<number>("destroy", { lanes: LANES });
  const { calls, throttled } = await engine.query<ApiCounters>("counters");
  await engine.query("close");

  const perPod = (verbs: readonly string[]) => verbs.reduce((sum, verb) => sum + (calls[verb] ?? 0), 0) / pods;
  const [start = 0, middle = 0, end = 0] = marks;
  const named = (what: string) => `${pods} simulated pods: ${what}`;
  report.add({ name: named("created and running, per second"), value: (pods - 1) / (sumOf(timesMs) / 1_000), unit: "pods/s" });
  report.add({ name: named("deleted, per second"), value: pods / (deleteMs / 1_000), unit: "pods/s" });
  report.add({ name: named("writes per pod"), value: perPod(WRITES), unit: "requests", aim: { of: "value", is: "at most", limit: 4 } });
  report.add({
    name: named("reads per pod, without the watch"),
    value: perPod(READS),
    unit: "requests",
    aim: { of: "value", is: "at most", limit: 0.1 },
  });
  report.add({ name: named("answers with the status 429"), value: throttled, unit: "answers" });
  report.add({
    name: named("CPU of the engine per pod, second half"),
    value: (end - middle) / (pods - 1 - half),
    unit: "us",
    beside: { what: "first half", value: (middle - start) / half },
    aim: { of: "ratio", is: "at most", limit: 1.3 },
  });
  report.add({ name: named("heap of the engine per pod"), value: (after.heapBytes - before.heapBytes) / (pods - 1) / 1_024, unit: "KiB" });
  report.add({ name: named("resident memory of the engine"), value: after.residentBytes / 2 ** 20, unit: "MiB" });
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, one) => sum + one, 0);
}
