import { PlatformError } from "@aenv/contract";
import type { KubernetesApi, KubernetesObject } from "./api/client.ts";
import { isKubernetesError } from "./api/error.ts";
import { EGRESS_LABEL } from "./pod/names.ts";

interface NetworkPolicy extends KubernetesObject {
  readonly spec: object;
}

/** The policy that gives sandboxes without egress none. The chart installs the same. */
export const NO_EGRESS: NetworkPolicy = {
  apiVersion: "networking.k8s.io/v1",
  kind: "NetworkPolicy",
  metadata: { name: "aenv-no-egress" },
  spec: { podSelector: { matchLabels: { [EGRESS_LABEL]: "none" } }, policyTypes: ["Egress"], egress: [] },
};

export function policyPath(namespace: string): string {
  return `${policiesPath(namespace)}/${NO_EGRESS.metadata.name}`;
}

/** Creates the policy in the namespace, unless it is there. The cluster's network must enforce policies, which the API does not say. */
export async function ensureNoEgress(api: KubernetesApi, namespace: string): Promise<void> {
  try {
    if ((await api.find(policyPath(namespace))) !== null) return;
    await api.create(policiesPath(namespace), NO_EGRESS);
  } catch (error) {
    if (isKubernetesError(error, 409)) return;
    if (!isKubernetesError(error, 403)) throw error;
    throw new PlatformError(
      "sandbox.unsupported",
      `the connections of sandboxes cannot be restricted: ${error.message}; install the chart, allow 'get' and 'create' of networkpolicies in namespace ${namespace}, or turn the setting kubeNetworkPolicies off`,
      { cause: error },
    );
  }
}

function policiesPath(namespace: string): string {
  return `/apis/networking.k8s.io/v1/namespaces/${namespace}/networkpolicies`;
}
