import { Gauge, Histogram, type Registry } from "prom-client";
import { MS } from "./call-metrics.ts";

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
    const registers = [registry];
    this.#readyMs = new Histogram({
      name: "aenv_pod_ready_duration_ms",
      help: "Duration from the request for a pod until its program answers",
      // Pods take longer than processes.
      buckets: [...MS.slice(MS.indexOf(250)), 60_000, 120_000, 300_000],
      registers,
    });
    const labelled = (name: string, help: string, label: string, read: () => Readonly<Record<string, number>>) =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [value, count] of Object.entries(read())) this.set({ [label]: value }, count);
        },
      });
    const gauge = (name: string, help: string, read: () => number) =>
      new Gauge({
        name,
        help,
        registers,
        collect() {
          this.set(read());
        },
      });
    labelled("aenv_pods", "Pods of this server, or of its group, by phase", "phase", () => source().podsByPhase);
    gauge("aenv_pods_waiting", "Pods of this server, or of its group, that wait for a sandbox", () => source().waitingPods);
    labelled("aenv_pod_claims_total", "Sandboxes that claimed a waiting pod or had one created", "result", () => source().podClaims);
    labelled("aenv_kubernetes_requests_total", "Requests to the Kubernetes API", "verb", () => source().apiCounters.calls);
    gauge("aenv_kubernetes_throttled_total", "Answers of the Kubernetes API with the status 429", () => source().apiCounters.throttled);
    gauge("aenv_kubernetes_retries_total", "Requests to the Kubernetes API that were sent again", () => source().apiCounters.retries);
  }

  podReady(durationMs: number): void {
    this.#readyMs.observe(durationMs);
  }
}
