import { fileURLToPath } from "node:url";
import { startPlatformServer } from "../platform/server.ts";
import { Trainer } from "../platform/trainer.ts";
import { takeTurns } from "../rounds.ts";
import type { Aim } from "../row.ts";
import { quantile } from "../statistics.ts";
import type { Report } from "../suite.ts";
import type { BenchCluster } from "./cluster.ts";
import { kubectlRun } from "./kubectl.ts";
import { measureNewPods } from "./new-pods.ts";
import type { Scale } from "./scale.ts";

const POOL_AIM = 1 / 20;
const SLOT_AIM_MS = 10;

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
  const unprepared = await cold.server.publish("ledger", "instance", { warm: 0 });
  let runs = 0;
  // Before the other server is started: pods that it starts in advance would slow down one side or the other.
  const newPodMs = await measureNewPods(report, cluster, scale.pairs, {
    kubectl: () => kubectlRun(kubectl, cluster, image, `bench-${++runs}`),
    ours: async () => (await cold.trainer.query("firstResults", { ref: unprepared, count: 1, isPaced: false }))[0] as number,
  });

  report.progress("create to first tool result: waiting pods and slots");
  const warm = await start({ poolMin: 1 });
  const own = await warm.server.publish("ledger", "instance");
  const slot = await warm.server.publish("ledger", "shared");

  const contenders = {
    pool: () => warm.trainer.query("firstResults", { ref: own, count: 1, isPaced: true }),
    slot: () => warm.trainer.query("firstResults", { ref: slot, count: scale.slots, isPaced: false }),
  };
  await takeTurns(1, contenders);
  const times = await takeTurns(scale.rounds, contenders);
  const beside = { what: "a new pod, mean", value: newPodMs };
  const add = (what: string, name: keyof typeof contenders, aim: Aim) =>
    report.add({ name: `create to first tool result, ${what}, p50`, value: quantile(times[name].flat(), 0.5), unit: "ms", beside, aim });
  add("a waiting pod", "pool", { of: "ratio", is: "at most", limit: POOL_AIM });
  add("a packed slot", "slot", { of: "value", is: "at most", limit: SLOT_AIM_MS });

  report.progress(`a batch of ${scale.batch} pods`);
  const batch = await cold.trainer.query("createBatches", { ref: unprepared, count: scale.batch, size: scale.batch, lanes: 1 });
  const { wrong } = await cold.trainer.query("callEach", { ids: batch.ids });
  if (wrong > 0) throw new Error(`${wrong} of ${scale.batch} instances answered wrongly`);
  report.add({ name: `a batch of ${scale.batch} new pods, until all answer`, value: batch.ms / 1_000, unit: "s" });
  const endMs = await cold.trainer.query("end", { ids: batch.ids });
  report.add({ name: `delete of ${scale.batch} instances with a pod each, per instance`, value: endMs / scale.batch, unit: "ms" });
}
