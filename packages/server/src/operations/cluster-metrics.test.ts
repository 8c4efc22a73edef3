import { Registry } from "prom-client";
import { expect, it } from "vitest";
import { ClusterMetrics } from "./cluster-metrics.ts";

it("reports pods by phase, waiting pods and their claims, requests by verb, throttled answers and the time until pods are ready, as they are now", async () => {
  const registry = new Registry();
  const source = {
    podsByPhase: { Pending: 2, Running: 0 },
    waitingPods: 3,
    podClaims: { claimed: 5, created: 1 },
    apiCounters: { calls: { create: 2 }, throttled: 1, retries: 3 },
  };
  const metrics = new ClusterMetrics(registry, () => source);
  metrics.podReady(700);
  await registry.metrics();
  source.podsByPhase = { Pending: 0, Running: 2 };
  const lines = (await registry.metrics()).split("\n");
  for (const line of [
    'aenv_pods{phase="Pending"} 0',
    'aenv_pods{phase="Running"} 2',
    "aenv_pods_waiting 3",
    'aenv_pod_claims_total{result="claimed"} 5',
    'aenv_kubernetes_requests_total{verb="create"} 2',
    "# TYPE aenv_pods gauge",
    "# TYPE aenv_pod_claims_total counter",
    "# TYPE aenv_kubernetes_throttled_total counter",
    "aenv_kubernetes_throttled_total 1",
    "aenv_kubernetes_retries_total 3",
    'aenv_pod_ready_duration_ms_bucket{le="500"} 0',
    'aenv_pod_ready_duration_ms_bucket{le="1000"} 1',
  ])
    expect(lines).toContain(line);
});
