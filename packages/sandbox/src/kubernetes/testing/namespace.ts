import { randomBytes } from "node:crypto";
import { kubeconfigPath } from "@aenv/testing";
import { type ClusterAccess, readKubeconfig } from "../api/access.ts";
import { KubernetesApi, type KubernetesObject } from "../api/client.ts";
import type { Pod } from "../pod/types.ts";

/** A namespace of the cluster for tests, for one test file. It admits only pods of the restricted Pod Security Standard. */
export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
  readonly access: ClusterAccess;
  readonly api: KubernetesApi;
  /** The path of its objects of a kind in the core API, such as `pods`. */
  path(kind: string, name?: string): string;
  pods(): Promise<readonly Pod[]>;
}

export async function openTestNamespace(): Promise<TestNamespace> {
  const access = readKubeconfig(kubeconfigPath() ?? "");
  const api = new KubernetesApi(access);
  const name = `aenv-test-${randomBytes(4).toString("hex")}`;
  const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
  await api.create<KubernetesObject>("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name, labels } });
  const path = (kind: string, object?: string) => `/api/v1/namespaces/${name}/${kind}${object === undefined ? "" : `/${object}`}`;
  return {
    name,
    access,
    api,
    path,
    pods: async () => (await api.list<Pod>(path("pods"), {})).items,
    [Symbol.asyncDispose]: async () => {
      await api.delete(`/api/v1/namespaces/${name}`);
      await api.close();
    },
  };
}
