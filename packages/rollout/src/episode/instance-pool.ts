import { isPlatformError, parseDuration } from "@aenv/contract";
import { Environment, type EnvironmentOptions } from "@aenv/sdk";
import type { EpisodeSpec, Lease } from "./play.ts";

export interface InstancePoolOptions {
  /** `name@version`. */
  readonly environment: string;
  /** Without `ttl`, an instance lives as long as it is used, and as much longer as an episode may take. */
  readonly options: EnvironmentOptions;
  readonly environmentDigest: string | null;
  /** Called when the server says that it is busy, with the pause it asks for. */
  readonly onBusy?: (pauseMs: number) => void;
}

const DEFAULT_PAUSE_MS = 1_000;
const DEFAULT_EPISODE_MS = 30 * 60_000;
/** New episodes begin on an instance for so long. */
const USED_MS = 30 * 60_000;

/**
 * Instances for the episodes of a run. One whose episode was scored is used again: the next episode resets it, if that has time enough
 * before the instance's time to live is over. One whose episode failed is ended, because nobody knows in which state it is.
 */
export class InstancePool implements AsyncDisposable {
  readonly #options: InstancePoolOptions;
  readonly #idle: Environment[] = [];
  /** When the time to live of each is over, by the monotonic clock. */
  readonly #endsAt = new WeakMap<Environment, number>();
  readonly #releasing = new Set<Promise<void>>();

  constructor(options: InstancePoolOptions) {
    this.#options = options;
  }

  /** A retry gets a fresh instance, in the place of one that waits. `episodeMs` is how long the episode may take. */
  async acquire(
    spec: Pick<EpisodeSpec, "task" | "seed"> & Partial<Pick<EpisodeSpec, "attempt">>,
    signal: AbortSignal,
    episodeMs = DEFAULT_EPISODE_MS,
  ): Promise<Lease & { readonly instance: Environment }> {
    const { attempt = 0 } = spec;
    const idle = this.#takeIdle(episodeMs);
    if (attempt > 0 && idle !== undefined) await this.#release(idle);
    const instance = (attempt === 0 ? idle : undefined) ?? (await this.#create(spec, signal, episodeMs));
    return {
      instance,
      provenance: this.#provenanceOf(instance),
      release: async (isReusable) => {
        if (isReusable) this.#idle.push(instance);
        else await this.#release(instance);
      },
    };
  }

  /** Ends all that wait for another episode. */
  async close(): Promise<void> {
    for (const instance of this.#idle.splice(0)) void this.#release(instance);
    await Promise.all(this.#releasing);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #takeIdle(episodeMs: number): Environment | undefined {
    for (;;) {
      const instance = this.#idle.pop();
      if (instance === undefined || performance.now() + episodeMs <= (this.#endsAt.get(instance) ?? 0)) return instance;
      void this.#release(instance);
    }
  }

  async #create({ task, seed }: Pick<EpisodeSpec, "task" | "seed">, signal: AbortSignal, episodeMs: number): Promise<Environment> {
    const { environment, options, onBusy } = this.#options;
    const { ttl = `${Math.ceil((USED_MS + episodeMs) / 60_000)}m` } = options;
    const instance = new Environment(environment, { ...options, ttl, ...(task.id !== null && { task: task.id }), seed });
    try {
      this.#endsAt.set(instance, performance.now() + lifetimeOf(ttl));
      await instance.initialize({ signal });
      return instance;
    } catch (error) {
      if (isPlatformError(error, "quota.exceeded")) onBusy?.(pauseOf(error.details.retryAfterSeconds));
      await this.#release(instance);
      throw error;
    }
  }

  #provenanceOf({ runtime }: Environment): Lease["provenance"] {
    const { environment, environmentDigest } = this.#options;
    const { engine = null, isolation = null, serverVersion = null } = runtime ?? {};
    return { environment, environment_digest: environmentDigest, engine, isolation, server_version: serverVersion };
  }

  #release(instance: Environment): Promise<void> {
    const releasing = instance.release().finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
    return releasing;
  }
}

/** In milliseconds. Without a time to live, an instance does not end by itself. */
function lifetimeOf(ttl: string): number {
  return (ttl === "" ? 0 : parseDuration(ttl)) || Number.POSITIVE_INFINITY;
}

function pauseOf(seconds: unknown): number {
  return typeof seconds === "number" ? seconds * 1_000 : DEFAULT_PAUSE_MS;
}
