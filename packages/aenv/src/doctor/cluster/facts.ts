import {
  isKubernetesError,
  type KubernetesApi,
  type KubernetesObject,
  listQuotas,
  type Quota,
  type RefusedRight,
  refusedRights,
} from "@aenv/sandbox";
import type { ServerConfig } from "@aenv/server";

/** What the API server says about a namespace and its cluster. Null where this account may not read it. */
export interface ClusterFacts {
  /** The name of this account, such as `system:serviceaccount:aenv:aenv`. */
  readonly account: string | null;
  readonly refused: readonly RefusedRight[];
  readonly namespaceLabels: Readonly<Record<string, string>> | null;
  readonly quotas: readonly Quota[] | null;
  readonly runtimeClasses: readonly string[] | null;
  readonly storageClasses: readonly StorageClass[] | null;
}

export interface StorageClass {
  readonly name: string;
  readonly isDefault: boolean;
}

interface SelfReview extends KubernetesObject {
  readonly status?: { readonly userInfo?: { readonly username?: string } };
}

const DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class";

/** Changes nothing. */
export async function readFacts(
  api: KubernetesApi,
  { kubeNamespace: namespace, kubeNetworkPolicies: networkPolicies }: Pick<ServerConfig, "kubeNamespace" | "kubeNetworkPolicies">,
  signal: AbortSignal,
): Promise<ClusterFacts> {
  const list = async <T extends KubernetesObject>(path: string) => (await api.list<T>(path, {}, signal)).items;
  const [account, refused, space, quotas, runtimes, storage] = await Promise.all([
    readable(() => accountName(api, signal)),
    refusedRights(api, { namespace, networkPolicies }, signal),
    readable(() => api.find(`/api/v1/namespaces/${namespace}`, signal)),
    readable(() => listQuotas(api, namespace, signal)),
    readable(() => list("/apis/node.k8s.io/v1/runtimeclasses")),
    readable(() => list("/apis/storage.k8s.io/v1/storageclasses")),
  ]);
  return {
    account,
    refused,
    namespaceLabels: space?.metadata.labels ?? null,
    quotas,
    runtimeClasses: runtimes?.map(({ metadata }) => metadata.name) ?? null,
    storageClasses:
      storage?.map(({ metadata }) => ({ name: metadata.name, isDefault: metadata.annotations?.[DEFAULT_CLASS] === "true" })) ?? null,
  };
}

/** Null also on clusters older than 1.28, which do not have this. */
async function accountName(api: KubernetesApi, signal: AbortSignal): Promise<string | null> {
  const review = { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview", metadata: { name: "" } };
  const answer = await api.create<SelfReview>("/apis/authentication.k8s.io/v1/selfsubjectreviews", review, signal);
  return answer.status?.userInfo?.username ?? null;
}

async function readable<T>(read: () => Promise<T>): Promise<T | null> {
  try {
    return await read();
  } catch (error) {
    if (isKubernetesError(error, 403) || isKubernetesError(error, 404)) return null;
    throw error;
  }
}
