import type { KubernetesApi } from "./api/client.ts";
import { ObjectWatch } from "./api/watch.ts";
import type { Pod } from "./pod/types.ts";

export interface PodTableOptions {
  readonly namespace: string;
  readonly selector: string;
  /** The pod has changed, or was found. */
  readonly onChange: (pod: Pod) => void;
  /** The pod does not exist any more. */
  readonly onGone: (pod: Pod) => void;
  /** Time between two listings; tests set it. */
  readonly relistEveryMs?: number;
  readonly watchSeconds?: number;
  readonly noNewsMs?: number;
}

/** A pod that is awaited is read by itself if the watch has reported nothing at all for this time: it may be stuck. */
const NO_NEWS_MS = 10_000;
/** The same if the watch reports other pods, but not this one. Most likely its cluster is busy, and reads would add to that. */
const NO_NEWS_OF_ONE = 6;
const LOOK_MS = 1_000;
/** Deleted objects are remembered for a while, because an answer that was sent before may arrive after. */
const REMEMBERED = 1_000;

/** All pods of a home, as a watch reports them. */
export class PodTable {
  readonly #api: KubernetesApi;
  readonly #options: PodTableOptions;
  readonly #watch: ObjectWatch<Pod>;
  readonly #pods = new Map<string, Pod>();
  readonly #gone = new Set<string>();
  readonly #waiting = new Map<string, Set<() => void>>();
  #reportedAt = 0;

  constructor(api: KubernetesApi, options: PodTableOptions) {
    this.#api = api;
    this.#options = options;
    const { relistEveryMs, watchSeconds } = options;
    this.#watch = new ObjectWatch(api, {
      path: this.path(),
      query: { labelSelector: options.selector },
      onList: (items, version) => this.#replace(items, version),
      onChange: (pod) => {
        this.#reportedAt = Date.now();
        this.put(pod);
      },
      onDelete: (pod) => {
        this.#reportedAt = Date.now();
        this.remove(pod);
      },
      ...(relistEveryMs !== undefined && { relistEveryMs }),
      ...(watchSeconds !== undefined && { watchSeconds }),
    });
  }

  path(name?: string): string {
    const all = `/api/v1/namespaces/${this.#options.namespace}/pods`;
    return name === undefined ? all : `${all}/${name}`;
  }

  /** Resolves when the table is complete. */
  listed(): Promise<void> {
    return this.#watch.listed();
  }

  find(name: string): Pod | null {
    return this.#pods.get(name) ?? null;
  }

  all(): readonly Pod[] {
    return [...this.#pods.values()];
  }

  /** Also called with answers of other requests, which may be older than what the watch has reported. */
  put(pod: Pod): void {
    const { name, uid = "" } = pod.metadata;
    if (this.#gone.has(uid)) return;
    const known = this.#pods.get(name);
    if (known?.metadata.uid === uid && versionOf(known) >= versionOf(pod)) return;
    if (known !== undefined && known.metadata.uid !== uid) this.remove(known);
    const kept = withoutManagers(pod);
    this.#pods.set(name, kept);
    this.#options.onChange(kept);
    this.#wake(name);
  }

  remove(pod: Pod): void {
    const { name, uid = "" } = pod.metadata;
    if (this.#gone.has(uid)) return;
    this.#gone.add(uid);
    for (const old of this.#gone) if (this.#gone.size > REMEMBERED) this.#gone.delete(old);
    if (this.#pods.get(name)?.metadata.uid === uid) this.#pods.delete(name);
    this.#options.onGone(pod);
    this.#wake(name);
  }

  /** Waits until the function returns a value for what is known about a pod; null stands for a pod that does not exist. */
  async until<T>(name: string, look: (pod: Pod | null) => T | undefined, signal: AbortSignal): Promise<T> {
    for (let newsAt = Date.now(); ; ) {
      signal.throwIfAborted();
      // Also without news: what a pod's state means may depend on how long it lasts.
      const value = look(this.find(name));
      if (value !== undefined) return value;
      this.#watch.throwIfRefused();
      if (await this.#news(name, signal, LOOK_MS)) newsAt = Date.now();
      else if (this.#isSilent(newsAt)) {
        await this.#refresh(name, signal);
        newsAt = Date.now();
      }
    }
  }

  #isSilent(newsAt: number): boolean {
    const { noNewsMs = NO_NEWS_MS } = this.#options;
    const now = Date.now();
    return now - Math.max(newsAt, this.#reportedAt) >= noNewsMs || now - newsAt >= NO_NEWS_OF_ONE * noNewsMs;
  }

  async close(): Promise<void> {
    await this.#watch.close();
  }

  /** False if nothing was reported in time. */
  #news(name: string, signal: AbortSignal, timeoutMs: number): Promise<boolean> {
    return new Promise((resolve) => {
      const wakers = this.#waiting.get(name) ?? new Set();
      this.#waiting.set(name, wakers);
      const end = (hasNews: boolean) => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        wakers.delete(wake);
        if (wakers.size === 0) this.#waiting.delete(name);
        resolve(hasNews);
      };
      const wake = () => end(true);
      const timer = setTimeout(() => end(false), timeoutMs);
      wakers.add(wake);
      signal.addEventListener("abort", wake);
      if (signal.aborted) wake();
    });
  }

  #wake(name: string): void {
    for (const wake of [...(this.#waiting.get(name) ?? [])]) wake();
  }

  async #refresh(name: string, signal: AbortSignal): Promise<void> {
    const known = this.find(name);
    const pod = await this.#api.find<Pod>(this.path(name), signal);
    if (pod !== null) this.put(pod);
    else if (known !== null && this.find(name) === known) this.remove(known);
  }

  /** What the list lacks is gone, unless it is newer than the list. */
  #replace(items: readonly Pod[], version: string): void {
    const names = new Set(items.map(({ metadata }) => metadata.name));
    for (const pod of this.#pods.values()) if (!names.has(pod.metadata.name) && versionOf(pod) <= numberOf(version)) this.remove(pod);
    for (const pod of items) this.put(pod);
  }
}

/** Who changed which field is half of an object, and of no use here. */
function withoutManagers(pod: Pod): Pod {
  const { managedFields: _, ...metadata } = pod.metadata as Pod["metadata"] & { readonly managedFields?: unknown };
  return { ...pod, metadata };
}

/** The versions of one kind of objects grow. */
function versionOf({ metadata: { resourceVersion = "0" } }: Pod): bigint {
  return numberOf(resourceVersion);
}

function numberOf(version: string): bigint {
  return /^\d+$/.test(version) ? BigInt(version) : 0n;
}
