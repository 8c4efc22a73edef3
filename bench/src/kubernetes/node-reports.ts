import { setTimeout } from "node:timers/promises";
import type { KubernetesObject } from "@aenv/sandbox";
import type { BenchCluster } from "./cluster.ts";

/** A kubelet looks once in this time at what its containers do, and reports it. */
const PERIOD_MS = 1_000;
const WATCH_SECONDS = "3600";

interface ReportedPod extends KubernetesObject {
  readonly status?: { readonly containerStatuses?: readonly { readonly state?: { readonly running?: object } }[] };
}

/** Notices when the node reports that a new container runs. */
export class NodeReports implements AsyncDisposable {
  readonly #stop = new AbortController();
  readonly #watching: Promise<void>;
  #lastAt = performance.now();

  constructor({ api, namespace }: BenchCluster) {
    this.#watching = this.#watch(api, namespace).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) throw error;
    });
    this.#watching.catch(() => undefined);
  }

  /** When the last report arrived, as `performance.now()`. */
  get lastAt(): number {
    return this.#lastAt;
  }

  /** Waits for at least `settleMs`, and then until this share of the node's period has passed. */
  async untilPhase(share: number, settleMs: number): Promise<void> {
    const earliest = performance.now() + settleMs - this.#lastAt;
    const periods = Math.ceil(earliest / PERIOD_MS - share);
    const pause = this.#lastAt + (periods + share) * PERIOD_MS - performance.now();
    const ended = this.#watching.then(() => Promise.reject(new Error("the watch of the bench's pods ended")));
    await Promise.race([setTimeout(pause), ended]);
  }

  async #watch(api: BenchCluster["api"], namespace: string): Promise<void> {
    const running = new Set<string>();
    const query = { watch: "true", timeoutSeconds: WATCH_SECONDS };
    let rest = "";
    for await (const data of await api.stream(`/api/v1/namespaces/${namespace}/pods`, query, this.#stop.signal)) {
      const lines = `${rest}${data}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) {
        const { metadata, status } = (JSON.parse(line) as { readonly object: ReportedPod }).object;
        const isRunning = status?.containerStatuses?.some(({ state }) => state?.running !== undefined) ?? false;
        if (!isRunning || running.has(metadata.name)) continue;
        running.add(metadata.name);
        this.#lastAt = performance.now();
      }
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#watching;
  }
}
