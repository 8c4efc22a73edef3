import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { messageOf, TimedSignal } from "@aenv/contract";
import type { KubernetesApi } from "../api/client.ts";
import { isKubernetesError } from "../api/error.ts";
import type { Pod } from "../pod/types.ts";
import { eventOf, type PodNote } from "./event.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface PodEventsOptions {
  readonly namespace: string;
  readonly log?: ((line: string) => void) | undefined;
}

/** Every event is an object that the cluster keeps for an hour. */
const AT_ONCE = 50;
const PER_SECOND = 10;
/** More than this many that wait for an answer: the API server is busy with what matters. */
const IN_FLIGHT = 20;
/** An account that may not write events is not likely to be allowed soon. */
const REFUSED_PAUSE_MS = 10 * 60_000;
const WRITE_MS = 10_000;
const CLOSE_MS = 1_000;

/** Writes events about pods. Those that cannot be written, or are too many, are left out: nothing depends on them. */
export class PodEvents {
  readonly #api: KubernetesApi;
  readonly #options: PodEventsOptions;
  readonly #writing = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  readonly #budget = new TokenBucket({ size: AT_ONCE, perSecond: PER_SECOND, now: Date.now() });
  #refusedUntil = 0;

  constructor(api: KubernetesApi, options: PodEventsOptions) {
    this.#api = api;
    this.#options = options;
  }

  /** Never throws, and is not waited for. */
  note(pod: Pod, note: PodNote): void {
    const now = Date.now();
    if (this.#closing.signal.aborted || now < this.#refusedUntil || this.#writing.size >= IN_FLIGHT || !this.#budget.take(now)) return;
    const writing = this.#write(pod, note).finally(() => this.#writing.delete(writing));
    this.#writing.add(writing);
  }

  async close(): Promise<void> {
    const timer = setTimeout(() => this.#closing.abort(), CLOSE_MS);
    await Promise.all(this.#writing);
    clearTimeout(timer);
    this.#closing.abort();
  }

  async #write(pod: Pod, note: PodNote): Promise<void> {
    const { namespace, log } = this.#options;
    const place = { namespace, instance: hostname(), suffix: randomBytes(8).toString("hex"), at: new Date() };
    using limit = new TimedSignal(WRITE_MS, this.#closing.signal);
    try {
      await this.#api.create(`/api/v1/namespaces/${namespace}/events`, eventOf(pod, note, place), limit.signal);
    } catch (error) {
      if (!isKubernetesError(error, 403) || Date.now() < this.#refusedUntil) return;
      this.#refusedUntil = Date.now() + REFUSED_PAUSE_MS;
      log?.(`events about pods are not written: ${messageOf(error)}; allow 'create' of events in namespace ${namespace}`);
    }
  }
}
