import { setTimeout as pause } from "node:timers/promises";
import { boundedLines, parseBoundedJson } from "@aenv/contract";
import type { KubernetesApi, KubernetesObject } from "./client.ts";
import { errorIn, isKubernetesError, type KubernetesError } from "./error.ts";
import { askedPauseMs } from "./retry.ts";

export interface WatchOptions<T> {
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  /** All objects, after a list. */
  readonly onList: (items: readonly T[], resourceVersion: string) => void;
  readonly onChange: (item: T) => void;
  readonly onDelete: (item: T) => void;
  /** Time between two listings; tests set it. */
  readonly relistEveryMs?: number;
  readonly watchSeconds?: number;
}

const MIN_PAUSE_MS = 50;
const MAX_PAUSE_MS = 5_000;
const RELIST_EVERY_MS = 5 * 60_000;
/** The server ends a watch after this time, so that one that is stuck does not last. */
const WATCH_SECONDS = 60;
/** A watch whose end does not arrive is given up a little later. */
const SLACK_MS = 15_000;
/** etcd stores objects of up to 1.5 MiB. */
const MAX_OBJECT_BYTES = 16 * 1_024 ** 2;
/** An API server that starts may refuse for a moment, until it has read who may do what. */
export const REFUSED_MS = 3_000;

interface WatchEvent<T> {
  readonly type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  readonly object: T;
}

/**
 * Keeps a client informed about all objects of a kind: a list, then the changes since. A watch may end at any time, with or without an
 * error. It is resumed where it ended; where that is no longer possible, and from time to time, everything is listed again.
 */
export class ObjectWatch<T extends KubernetesObject> {
  readonly #api: KubernetesApi;
  readonly #options: WatchOptions<T>;
  readonly #closing = new AbortController();
  #listed: PromiseWithResolvers<void> = Promise.withResolvers();
  #hasListed = false;
  #running: Promise<void> | undefined;
  #watching = new AbortController();
  #lists = 0;
  #refusal: { readonly error: KubernetesError; readonly since: number } | null = null;

  constructor(api: KubernetesApi, options: WatchOptions<T>) {
    this.#api = api;
    this.#options = options;
    this.#listed.promise.catch(() => undefined);
  }

  /** How often everything was listed. */
  get lists(): number {
    return this.#lists;
  }

  /**
   * Resolves when everything was listed once. Rejects with the reason if that is not possible now, or if the account may not read the
   * objects any more; a later call waits again.
   */
  async listed(): Promise<void> {
    this.#running ??= this.#run();
    if (!this.#hasListed) await this.#listed.promise;
    this.throwIfRefused();
  }

  /** Throws what the API server says if the account may not list or watch the objects: then nothing new is known about them. */
  throwIfRefused(): void {
    if (this.#refusal !== null && Date.now() - this.#refusal.since >= REFUSED_MS) throw this.#refusal.error;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#watching.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#closing;
    const { relistEveryMs = RELIST_EVERY_MS } = this.#options;
    let version: string | null = null;
    let relistAt = 0;
    for (let pauseMs = MIN_PAUSE_MS; !signal.aborted; ) {
      let askedMs = 0;
      try {
        if (version === null || Date.now() >= relistAt) {
          version = await this.#list(signal);
          relistAt = Date.now() + relistEveryMs;
        }
        version = await this.#watch(version);
        pauseMs = MIN_PAUSE_MS;
        continue;
      } catch (error) {
        if (signal.aborted) break;
        askedMs = askedPauseMs(error) ?? 0;
        if (isKubernetesError(error, 403)) this.#refusal = { error, since: this.#refusal?.since ?? Date.now() };
        if (isExpired(error)) version = null;
        else this.#reportTo(error);
      }
      await pause(Math.max(pauseMs, askedMs), undefined, { signal }).catch(() => undefined);
      pauseMs = Math.min(pauseMs * 2, MAX_PAUSE_MS);
    }
    this.#listed.resolve();
  }

  /** Whoever waits for the first list now learns why there is none; later callers wait for the next attempt. */
  #reportTo(error: unknown): void {
    if (this.#hasListed) return;
    this.#listed.reject(error);
    this.#listed = Promise.withResolvers();
    this.#listed.promise.catch(() => undefined);
  }

  async #list(signal: AbortSignal): Promise<string> {
    const { path, query, onList } = this.#options;
    const { items, resourceVersion } = await this.#api.list<T>(path, query, signal);
    this.#lists++;
    onList(items, resourceVersion);
    this.#hasListed = true;
    this.#listed.resolve();
    return resourceVersion;
  }

  /** Returns from where to go on when the watch has ended. */
  async #watch(from: string): Promise<string> {
    const { path, query, onChange, onDelete, watchSeconds = WATCH_SECONDS } = this.#options;
    let version = from;
    this.#watching = new AbortController();
    const { signal } = this.#watching;
    if (this.#closing.signal.aborted) this.#watching.abort();
    const late = setTimeout(() => this.#watching.abort(new Error("the watch did not end in time")), watchSeconds * 1_000 + SLACK_MS);
    const asked = { ...query, watch: "true", allowWatchBookmarks: "true", resourceVersion: from, timeoutSeconds: String(watchSeconds) };
    try {
      const stream = await this.#api.stream(path, asked, signal);
      this.#refusal = null;
      for await (const line of boundedLines(stream, { maxLineLength: MAX_OBJECT_BYTES })) {
        const { type, object } = parseBoundedJson(line) as WatchEvent<T>;
        if (type === "ERROR") throw statusError(object);
        version = object.metadata.resourceVersion ?? version;
        if (type === "DELETED") onDelete(object);
        else if (type !== "BOOKMARK") onChange(object);
      }
    } catch (error) {
      if (isExpired(error) || version === from) throw error;
      // Something arrived before the connection was lost: go on behind it at once.
    } finally {
      clearTimeout(late);
    }
    return version;
  }
}

function statusError(object: unknown): KubernetesError {
  return errorIn(Number((object as { code?: unknown }).code ?? 500), JSON.stringify(object));
}

function isExpired(error: unknown): boolean {
  return isKubernetesError(error, 410) || (isKubernetesError(error) && (error.reason === "Expired" || error.reason === "Gone"));
}
