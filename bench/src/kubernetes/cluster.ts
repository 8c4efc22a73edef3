import { randomBytes } from "node:crypto";
import { KubernetesApi, type KubernetesObject, readKubeconfig } from "@aenv/sandbox";
import { kubeconfigPath } from "@aenv/testing";

/** A namespace of the cluster for the measurements. Disposing deletes it with all that is in it. */
export interface BenchCluster extends AsyncDisposable {
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly api: KubernetesApi;
}

export async function openBenchCluster(): Promise<BenchCluster> {
  const kubeconfig = kubeconfigPath();
  if (kubeconfig === null) throw new Error("no kubeconfig names a cluster");
  const api = new KubernetesApi(readKubeconfig(kubeconfig));
  const namespace = `aenv-bench-${randomBytes(4).toString("hex")}`;
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await api.create<KubernetesObject>("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace, labels } });
  return {
    kubeconfig,
    namespace,
    api,
    [Symbol.asyncDispose]: async () => {
      await api.delete(`/api/v1/namespaces/${namespace}`);
      await api.close();
    },
  };
}
