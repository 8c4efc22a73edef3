import { isPlatformError } from "@aenv/contract";
import { Environment, type EnvironmentOptions } from "@aenv/sdk";
import type { EpisodeSpec, Lease } from "./play.ts";

export interface InstancesOptions {
  /** `name@version`. */
  readonly environment: string;
  readonly options: EnvironmentOptions;
  readonly provenance: Lease["provenance"];
  /** Called when the server says that it is busy, with the pause it asks for. */
  readonly onBusy?: (pauseMs: number) => void;
  /** An instance that is older than this is not used again, because its time to live ends before the episode may. */
  readonly maxAgeMs?: number;
}

const DEFAULT_PAUSE_MS = 1_000;

/**
 * Instances for the episodes of a run. One whose episode was scored is used again: the next episode resets it. One whose episode
 * failed is ended, because nobody knows in which state it is.
 */
export class Instances implements AsyncDisposable {
  readonly #options: InstancesOptions;
  readonly #idle: Environment[] = [];
  readonly #createdAt = new WeakMap<Environment, number>();
  readonly #releasing = new Set<Promise<void>>();

  constructor(options: InstancesOptions) {
    this.#options = options;
  }

  /** A retry gets a fresh instance, in the place of one that waits. */
  async acquire(
    spec: Pick<EpisodeSpec, "task" | "seed"> & Partial<Pick<EpisodeSpec, "attempt">>,
    signal: AbortSignal,
  ): Promise<Lease & { readonly instance: Environment }> {
    const { attempt = 0 } = spec;
    const idle = this.#takeIdle();
    if (attempt > 0 && idle !== undefined) await this.#release(idle);
    const instance = (attempt === 0 ? idle : undefined) ?? (await this.#create(spec, signal));
    return {
      instance,
      provenance: { ...this.#options.provenance, ...runtimeOf(instance) },
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

  #takeIdle(): Environment | undefined {
    for (;;) {
      const instance = this.#idle.pop();
      if (instance === undefined || this.#ageOf(instance) <= (this.#options.maxAgeMs ?? Number.POSITIVE_INFINITY)) return instance;
      void this.#release(instance);
    }
  }

  #ageOf(instance: Environment): number {
    return performance.now() - (this.#createdAt.get(instance) ?? 0);
  }

  async #create({ task, seed }: Pick<EpisodeSpec, "task" | "seed">, signal: AbortSignal): Promise<Environment> {
    const { environment, options, onBusy } = this.#options;
    const instance = new Environment(environment, { ...options, ...(task.id !== null && { task: task.id }), seed });
    try {
      this.#createdAt.set(instance, performance.now());
      await instance.initialize({ signal });
      return instance;
    } catch (error) {
      if (isPlatformError(error, "quota.exceeded")) onBusy?.(pauseOf(error.details.retryAfterSeconds));
      await this.#release(instance);
      throw error;
    }
  }

  #release(instance: Environment): Promise<void> {
    const releasing = instance.release().finally(() => this.#releasing.delete(releasing));
    this.#releasing.add(releasing);
    return releasing;
  }
}

/** What the server says of an instance; what it does not say stays as the run's options have it. */
function runtimeOf({ runtime }: Environment): Partial<Lease["provenance"]> {
  const { engine, isolation, serverVersion } = runtime ?? {};
  return {
    ...(typeof engine === "string" && { engine }),
    ...(typeof isolation === "string" && { isolation }),
    ...(typeof serverVersion === "string" && { server_version: serverVersion }),
  };
}

function pauseOf(seconds: unknown): number {
  return typeof seconds === "number" ? seconds * 1_000 : DEFAULT_PAUSE_MS;
}
