import type { EngineMeasure } from "../engine.ts";
import type { ApiCounters } from "./api/client.ts";
import type { Pod } from "./pod/types.ts";

const PHASES = ["Pending", "Running", "Succeeded", "Failed", "Unknown"] as const;
const METHODS = ["GET", "POST", "PATCH", "DELETE"] as const;

/** What operators see of the cluster. */
export function measuresOf(pods: readonly Pod[], { calls, throttled, retries }: ApiCounters, lists: number): readonly EngineMeasure[] {
  const pod = { name: "aenv_kubernetes_pods", help: "Pods of this server or its group" };
  const call = { name: "aenv_kubernetes_api_calls_total", help: "Requests to the API of the cluster, with watches and logs" };
  return [
    ...PHASES.map((phase) => ({
      ...pod,
      label: { name: "phase", value: phase },
      value: pods.filter(({ status }) => (status?.phase ?? "Pending") === phase).length,
    })),
    ...METHODS.map((method) => ({ ...call, label: { name: "method", value: method }, value: calls[method] ?? 0 })),
    { name: "aenv_kubernetes_api_throttled_total", help: "Requests that the API server answered with 429", value: throttled },
    { name: "aenv_kubernetes_api_retries_total", help: "Requests to the API server that were sent again", value: retries },
    { name: "aenv_kubernetes_lists_total", help: "Complete lists of pods, beside the watch", value: lists },
  ];
}
