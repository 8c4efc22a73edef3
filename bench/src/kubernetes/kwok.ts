import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KubernetesApi, type KubernetesObject, readKubeconfig } from "@aenv/sandbox";
import { own } from "../processes/own.ts";

/** Nodes that exist in the API alone. */
export interface SimulatedNodes extends AsyncDisposable {
  /** What pods need to be on them. */
  readonly podSpec: Readonly<Record<string, unknown>>;
}

interface Node extends KubernetesObject {
  readonly spec: object;
  readonly status: {
    readonly capacity?: object;
    readonly allocatable?: object;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

const MARK = "aenv.io/simulated";
const PODS_PER_NODE = 500;
const READY_MS = 60_000;

/** Starts kwok with enough nodes for so many pods, and waits until they are ready. */
export async function simulateNodes(kwok: string, kubeconfig: string, pods: number): Promise<SimulatedNodes> {
  const run = randomBytes(4).toString("hex");
  const api = new KubernetesApi(readKubeconfig(kubeconfig));
  const stages = fileURLToPath(new URL("./stages.yaml", import.meta.url));
  const process = spawn(
    kwok,
    [
      ...["--kubeconfig", kubeconfig, "--config", stages],
      ...["--manage-all-nodes=false", `--manage-nodes-with-annotation-selector=${MARK}=${run}`],
    ],
    { stdio: "ignore" },
  );
  const end = own(process, "SIGTERM");
  const names = Array.from({ length: Math.ceil((pods * 1.1) / PODS_PER_NODE) }, (_, n) => `aenv-simulated-${run}-${n}`);
  const remove = async () => {
    await Promise.all(names.map((name) => api.delete(`/api/v1/nodes/${name}`)));
    await end();
    await api.close();
  };
  try {
    for (const name of names) await api.create("/api/v1/nodes", nodeOf(name, run));
    const deadline = Date.now() + READY_MS;
    for (const name of names)
      while (!isReady(await api.get<Node>(`/api/v1/nodes/${name}`))) {
        if (Date.now() > deadline || process.exitCode !== null) throw new Error(`the simulated node ${name} does not get ready`);
        await setTimeout(200);
      }
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    podSpec: { nodeSelector: { [MARK]: run }, tolerations: [{ key: MARK, operator: "Equal", value: run, effect: "NoSchedule" }] },
    [Symbol.asyncDispose]: remove,
  };
}

function nodeOf(name: string, run: string): Node {
  const room = { cpu: "1k", memory: "1Ti", "ephemeral-storage": "100Ti", pods: String(PODS_PER_NODE) };
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: { name, labels: { [MARK]: run, "kubernetes.io/hostname": name }, annotations: { [MARK]: run } },
    // No other pod gets there.
    spec: { taints: [{ key: MARK, value: run, effect: "NoSchedule" }] },
    status: { allocatable: room, capacity: room },
  };
}

function isReady({ status }: Node): boolean {
  return status.conditions?.some(({ type, status }) => type === "Ready" && status === "True") ?? false;
}
