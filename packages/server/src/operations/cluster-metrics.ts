import { Histogram, type Registry } from "prom-client";
import { MS } from "./call-metrics.ts";
import { readMetrics } from "./read-metrics.ts";

/** What the engine kubernetes knows about its pods and its requests. */
export interface ClusterSource {
  readonly podsByPhase: Readonly<Record<string, number>>;
  readonly waitingPods: number;
  readonly podClaims: Readonly<Record<string, number>>;
  readonly apiCounters: { readonly calls: Readonly<Record<string, number>>; readonly throttled: number; readonly retries: number };
}

/** The metrics of the engine kubernetes. */
export class ClusterMetrics {
  readonly #readyMs: Histogram;

  constructor(registry: Registry, source: () => ClusterSource) {
    this.#readyMs = new Histogram({
      name: "aenv_pod_ready_duration_ms",
      help: "Duration from the request for a pod until its program answers",
      // Pods take longer than processes.
      buckets: [...MS.slice(MS.indexOf(250)), 60_000, 120_000, 300_000],
      registers: [registry],
    });
    const { gauge, gauges, total, totals } = readMetrics(registry);
    gauges("aenv_pods", "Pods of this server, or of its group, by phase", "phase", () => source().podsByPhase);
    gauge("aenv_pods_waiting", "Pods of this server, or of its group, that wait for a sandbox", () => source().waitingPods);
    totals("aenv_pod_claims_total", "Sandboxes that claimed a waiting pod or had one created", "result", () => source().podClaims);
    totals("aenv_kubernetes_requests_total", "Requests to the Kubernetes API", "verb", () => source().apiCounters.calls);
    total("aenv_kubernetes_throttled_total", "Answers of the Kubernetes API with the status 429", () => source().apiCounters.throttled);
    total("aenv_kubernetes_retries_total", "Requests to the Kubernetes API that were sent again", () => source().apiCounters.retries);
  }

  podReady(durationMs: number): void {
    this.#readyMs.observe(durationMs);
  }
}
