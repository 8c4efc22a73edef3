import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { BenchCluster } from "./cluster.ts";
import { kubectlRun } from "./kubectl.ts";
import type { Scale } from "./scale.ts";

const COLD_AIM = 1.1;
const POOL_AIM = 1 / 20;
const SLOT_AIM_MS = 10;

/** A kubelet looks at its containers once in a second, so what always begins at the same moment of it is always fast, or always slow. */
function anyPhase(): Promise<void> {
  return setTimeout(Math.random() * 1_000);
}

/** From the create request to the first tool result of an instance in a pod, and how long instances take to end. */
export async function measureFirstResult(
  report: Report,
  cluster: BenchCluster,
  { image, kubectl, scale }: { readonly image: string; readonly kubectl: string; readonly scale: Scale },
): Promise<void> {
  report.progress("create to first tool result");
  await using open = new AsyncDisposableStack();
  const { kubeconfig, namespace: kubeNamespace } = cluster;
  const podTemplates = fileURLToPath(new URL("./templates", import.meta.url));
  // Outside of the server's home: the node may run on this machine, and ends the processes of a deleted pod later.
  const dataDir = "/var/lib/aenv";
  const settings = { engine: "kubernetes", kubeconfig, kubeNamespace, baseImage: image, podTemplates, startTimeout: "180s", dataDir };
  const start = async (more: Readonly<Record<string, unknown>>) => {
    const server = open.use(await startPlatformServer({ ...settings, ...more }));
    return { server, trainer: open.use(await Trainer.open(server)) };
  };
  const cold = await start({ poolMin: 0, poolMax: 0, sandboxesReady: 0 });
  const warm = await start({ poolMin: 1 });
  const unprepared = await cold.server.publish("ledger", "instance", { warm: 0 });
  const own = await warm.server.publish("ledger", "instance");
  const slot = await warm.server.publish("ledger", "shared");

  let runs = 0;
  const contenders = {
    kubectl: async () => {
      await anyPhase();
      return [await kubectlRun(kubectl, cluster, image, `bench-${++runs}`)];
    },
    cold: async () => {
      await anyPhase();
      return cold.trainer.query("firstResults", { ref: unprepared, count: 1, isPaced: false });
    },
    pool: () => warm.trainer.query("firstResults", { ref: own, count: 1, isPaced: true }),
    slot: () => warm.trainer.query("firstResults", { ref: slot, count: scale.slots, isPaced: false }),
  };
  await takeTurns(1, contenders);
  const times = await takeTurns(scale.rounds, contenders);
  const p50 = (name: keyof typeof contenders) => quantile(times[name].flat(), 0.5);
  const add = (what: string, name: keyof typeof contenders, more: Partial<Parameters<Report["add"]>[0]>) =>
    report.add({ name: `create to first tool result, ${what}, p50`, value: p50(name), unit: "ms", ...more });
  add("a new pod", "cold", {
    beside: { what: "kubectl run of the same image until ready", value: p50("kubectl") },
    aim: { of: "ratio", is: "at most", limit: COLD_AIM },
  });
  add("a waiting pod", "pool", { beside: { what: "a new pod", value: p50("cold") }, aim: { of: "ratio", is: "at most", limit: POOL_AIM } });
  add("a packed slot", "slot", {
    beside: { what: "a new pod", value: p50("cold") },
    aim: { of: "value", is: "at most", limit: SLOT_AIM_MS },
  });

  report.progress(`a batch of ${scale.batch} pods`);
  const batch = await cold.trainer.query("createBatches", { ref: unprepared, count: scale.batch, size: scale.batch, lanes: 1 });
  const { wrong } = await cold.trainer.query("callEach", { ids: batch.ids });
  if (wrong > 0) throw new Error(`${wrong} of ${scale.batch} instances answered wrongly`);
  report.add({ name: `a batch of ${scale.batch} new pods, until all answer`, value: batch.ms / 1_000, unit: "s" });
  const endMs = await cold.trainer.query("end", { ids: batch.ids });
  report.add({ name: `delete of ${scale.batch} instances with a pod each, per instance`, value: endMs / scale.batch, unit: "ms" });
}
