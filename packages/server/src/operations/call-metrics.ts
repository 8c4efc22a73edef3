import { Counter, Histogram, type Registry } from "prom-client";

/** The metrics of a registry, as one process sends them to another. */
export type MetricValues = Awaited<ReturnType<Registry["getMetricsAsJSON"]>>;

/** The limits of the histograms' buckets, in milliseconds. */
export const MS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000];

/** Counts the calls through the gateway of one process. */
export class CallMetrics {
  readonly #calls: Counter;
  readonly #callMs: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#calls = new Counter({
      name: "aenv_api_mcp_requests_total",
      help: "Calls through the gateway",
      labelNames: ["api", "status", "end"],
      registers,
    });
    this.#callMs = new Histogram({
      name: "aenv_api_mcp_request_duration_ms",
      help: "Duration of a call through the gateway",
      labelNames: ["api"],
      buckets: MS,
      registers,
    });
  }

  call(api: string, status: number, end: string, durationMs: number): void {
    this.#calls.inc({ api, status, end });
    this.#callMs.observe({ api }, durationMs);
  }
}
