import { setTimeout as pause } from "node:timers/promises";
import { type InstanceModels, isPlatformError, newKey, type RolloutRequest, type Trajectory, untilAborted } from "@aenv/contract";
import { type EpisodeSpec, InstancePool, type Lease } from "@aenv/rollout";
import { type Environment, SchedulerClient } from "@aenv/sdk";
import type { Caller } from "@aenv/server/trainer-services";
import type { CallerAccess, Loopback } from "../loopback/loopback.ts";
import { TaskList } from "../sessions/task-list.ts";

export interface PoolsOptions {
  readonly loopback: Loopback;
  readonly serverId: string;
}

/** Whose instances, and of what. */
export interface PoolSpec {
  readonly caller: Caller;
  /** `name@version`. */
  readonly environment: string;
  readonly environmentDigest: string | null;
  readonly variables: Readonly<Record<string, string>>;
  readonly models?: InstanceModels | undefined;
}

/** Instances are created with this label, so that those of a lost server can be found. */
const SERVER_LABEL = "aenv-rollouts";
const POOL_LABEL = "aenv-rollouts-pool";

/** An unused pool is closed after this time; the next rollouts of a trainer usually come sooner. */
const KEEP_UNUSED_MS = 10_000;
/** Other rollouts of the owner may free an instance too. */
const QUOTA_PAUSE_MS = 1_000;
/** New episodes begin on an instance for this time; it lives as much longer as an episode may take. */
const USED_MS = 30 * 60_000;

/** Instances for rollouts, shared by the rollouts of one caller and environment, so that an instance is used again by a reset. */
export class InstancePools {
  readonly #options: PoolsOptions;
  readonly #pools = new Map<string, SharedPool>();

  constructor(options: PoolsOptions) {
    this.#options = options;
  }

  /** A pool for as long as the caller holds it. */
  hold(spec: PoolSpec, maxEpisodeMs: number): HeldPool {
    // Rounded up, so that rollouts with slightly different limits share their instances.
    const ttlMinutes = Math.ceil((USED_MS + maxEpisodeMs) / 600_000) * 10;
    const { caller, environment, variables, models } = spec;
    const key = JSON.stringify([caller.owner, caller.tokenId, environment, ttlMinutes, Object.entries(variables).sort(), models]);
    const pool = this.#pools.get(key) ?? new SharedPool(spec, ttlMinutes, this.#options);
    this.#pools.set(key, pool);
    const isUnused = pool.hold();
    return {
      acquire: (episode, task, signal) => pool.acquire(episode, task, signal, maxEpisodeMs),
      [Symbol.dispose]: () =>
        isUnused(KEEP_UNUSED_MS, () => {
          if (this.#pools.get(key) === pool) this.#pools.delete(key);
        }),
    };
  }

  /** Ends the caller's instances that a lost server used for rollouts; otherwise they would live until their time to live is over. */
  async endThoseOf(server: string, caller: Caller): Promise<void> {
    await endInstances({ [SERVER_LABEL]: server }, caller, this.#options.loopback);
  }

  /** Ends all instances that wait for another episode. */
  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    await Promise.all(pools.map((pool) => pool.close()));
  }
}

export interface HeldPool extends Disposable {
  acquire(spec: EpisodeSpec, task: RolloutRequest["task"], signal: AbortSignal): Promise<Lease>;
}

class SharedPool {
  readonly #id = newKey();
  readonly #caller: Caller;
  readonly #loopback: Loopback;
  readonly #access: CallerAccess;
  readonly #instances: InstancePool;
  #tasks: Promise<TaskList> | null = null;
  readonly #waiting: (() => void)[] = [];
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor({ caller, environment, environmentDigest, variables, models }: PoolSpec, ttlMinutes: number, options: PoolsOptions) {
    this.#caller = caller;
    this.#loopback = options.loopback;
    this.#access = options.loopback.as(caller);
    const { controlUrl, dataUrl, apiKey, maxAnswerBytes, maxAnswerValues } = this.#access;
    this.#instances = new InstancePool({
      environment,
      // Requests to this server itself: what fails is tried again as a new attempt, or waits here.
      options: {
        controlUrl,
        dataUrl,
        apiKey,
        maxAnswerBytes,
        maxAnswerValues,
        variables,
        ...(models !== undefined && { models }),
        maxRetries: 0,
        ttl: `${ttlMinutes}m`,
        labels: { [SERVER_LABEL]: options.serverId, [POOL_LABEL]: this.#id },
      },
      environmentDigest,
    });
  }

  /** The returned function ends the hold; if the pool stays unused, it is closed. */
  hold(): (keepMs: number, onClose: () => void) => void {
    this.#holders++;
    clearTimeout(this.#timer);
    return (keepMs, onClose) => {
      this.#holders--;
      if (this.#holders > 0) return;
      this.#timer = setTimeout(() => {
        onClose();
        void this.close();
      }, keepMs).unref();
    };
  }

  async acquire(spec: EpisodeSpec, wanted: RolloutRequest["task"], signal: AbortSignal, episodeMs: number): Promise<Lease> {
    const lease = await this.#untilAllowed(spec, signal, episodeMs);
    const release = async (isReusable: boolean) => {
      await lease.release(isReusable);
      for (const wake of this.#waiting.splice(0)) wake();
    };
    try {
      return { ...lease, release, task: await untilAborted(this.#taskOf(wanted, lease.instance), signal) };
    } catch (error) {
      await release(false);
      throw error;
    }
  }

  /** At the owner's limit of instances a rollout waits for one that is released: the limit is no reason to leave it unscored. */
  async #untilAllowed(spec: EpisodeSpec, signal: AbortSignal, episodeMs: number): Promise<Awaited<ReturnType<InstancePool["acquire"]>>> {
    for (let { attempt } = spec; ; attempt = 0) {
      try {
        return await this.#instances.acquire({ ...spec, attempt }, signal, episodeMs);
      } catch (error) {
        if (signal.aborted || !isPlatformError(error, "quota.exceeded")) throw error;
        const released = new Promise<void>((resolve) => this.#waiting.push(resolve));
        await Promise.race([released, pause(QUOTA_PAUSE_MS, undefined, { signal })]);
      }
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer);
    await this.#instances.close();
    this.#access[Symbol.dispose]();
    if (this.#caller.tokenId === null) return;
    // A token that was revoked or has expired cannot end its instances, so the owner's are ended without it. Those that stay end by their ttl.
    await endInstances({ [POOL_LABEL]: this.#id }, { ...this.#caller, tokenId: null }, this.#loopback).catch(() => {});
  }

  /** The task with its split and its place there, which the environment's list of tasks tells. It is read once for all rollouts. */
  async #taskOf(wanted: RolloutRequest["task"], instance: Environment): Promise<Trajectory["task"]> {
    if (!wanted || "inline" in wanted) return { id: null, split: null, index: null, ...wanted };
    // The list may have been asked of another rollout's instance, which has ended.
    const listing = this.#listTasks(instance).catch(() => this.#listTasks(instance));
    // An id is enough to play: whether the task exists is decided by the reset.
    const list = await ("id" in wanted ? listing.catch(() => null) : listing);
    const found = "id" in wanted ? (list?.find(wanted.id) ?? { id: wanted.id, split: null, index: null }) : list?.get(wanted);
    const { id = null, split = null, index = null } = found ?? {};
    return { id, split, index };
  }

  #listTasks(instance: Environment): Promise<TaskList> {
    if (this.#tasks !== null) return this.#tasks;
    const listing = instance.tasks().then((tasks) => new TaskList(tasks));
    this.#tasks = listing;
    listing.catch(() => {
      if (this.#tasks === listing) this.#tasks = null;
    });
    return listing;
  }
}

async function endInstances(labels: Readonly<Record<string, string>>, caller: Caller, loopback: Loopback): Promise<void> {
  using access = loopback.as(caller);
  const client = new SchedulerClient(access.controlUrl, { apiKey: access.apiKey });
  for await (const { id, status } of client.eachInstance({ labels }))
    if (status !== "Terminated" && status !== "Failed") await client.deleteInstance(id);
}
