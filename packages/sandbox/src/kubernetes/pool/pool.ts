import { messageOf } from "@aenv/contract";
import type { KubernetesApi } from "../api/client.ts";
import { isKubernetesError } from "../api/error.ts";
import { isQuotaRefusal } from "../failures.ts";
import { hasTerminated } from "../pod/progress.ts";
import { stateOf } from "../pod/state.ts";
import type { Pod } from "../pod/types.ts";
import type { PodTable } from "../pods.ts";
import { listQuotas } from "../quota.ts";
import { QuotaBudget, type SeenQuotas } from "./budget.ts";
import { PodDemand } from "./demand.ts";
import { claimOf, digestOf, freeNames, isWaiting, type PodKind } from "./kind.ts";
import { choose, type PoolLimits, surplusOf, targetsOf, usabilityOf } from "./plan.ts";

export interface PodPoolOptions {
  readonly namespace: string;
  readonly limits: PoolLimits;
  /** How long a waiting pod may be without a node. */
  readonly unschedulableMs: number;
  /** Other servers use the pods too, so they stay when this one is closed. */
  readonly isShared: boolean;
  readonly roundMs?: number | undefined;
  /** Called for each pod that was created to wait. */
  readonly onCreated?: (pod: Pod) => void;
  readonly log?: ((line: string) => void) | undefined;
}

interface Kind {
  /** Null if only other servers have made such pods: they cannot be made here. */
  made: PodKind | null;
  readonly demand: PodDemand;
  /** After a pod that could not be created or started. */
  pausedUntil: number;
}

const ROUND_MS = 10_000;
/** A kind is not filled for this time after a failure, and none is after a pod had to make room. */
const PAUSE_MS = 30_000;
/** The node may report about a pod while it is claimed, which is a conflict too. */
const CLAIM_ATTEMPTS = 4;

/**
 * Pods whose init waits for a program. All servers of a home or group share them: each sees them by its watch, and takes one by removing
 * its label, on the condition that it has not changed. A pod that was ever given a program does not wait again.
 */
export class PodPool {
  readonly #api: KubernetesApi;
  readonly #pods: PodTable;
  readonly #options: PodPoolOptions;
  readonly #kinds = new Map<string, Kind>();
  /** Uids of pods that this server is claiming or removing. */
  readonly #taken = new Set<string>();
  /** Uids of pods whose use was counted. */
  readonly #counted = new Set<string>();
  /** Uids of waiting pods that this server has created. */
  readonly #own = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #isListed = false;
  #isClosed = false;
  #pausedUntil = 0;
  #quotas: SeenQuotas = { quotas: [], pods: [] };
  #quotasReadAt = 0;
  #quotaProblem = "";
  #filling: Promise<void> | null = null;

  constructor(api: KubernetesApi, pods: PodTable, options: PodPoolOptions) {
    this.#api = api;
    this.#pods = pods;
    this.#options = options;
    this.#timer = setInterval(() => void this.fill(), options.roundMs ?? ROUND_MS).unref();
  }

  /** Counts the pods of sandboxes, also those of other servers. */
  observe(pod: Pod): void {
    const digest = digestOf(pod);
    const { uid = "" } = pod.metadata;
    if (digest === null || isWaiting(pod) || this.#counted.has(uid)) return;
    this.#counted.add(uid);
    // Those that were there before are no demand.
    if (this.#isListed) this.#kindOf(digest).demand.note(Date.now());
  }

  forget({ metadata: { uid = "" } }: Pod): void {
    this.#counted.delete(uid);
    this.#taken.delete(uid);
    this.#own.delete(uid);
  }

  /** A waiting pod, which is that of this sandbox from now on; null if none waits. */
  async claim(kind: PodKind, pod: Pod, signal: AbortSignal): Promise<Pod | null> {
    this.#isListed = true;
    this.#kindOf(kind.digest).made = kind;
    for (;;) {
      signal.throwIfAborted();
      const candidates = this.#waiting().filter((one) => digestOf(one) === kind.digest);
      const chosen = choose(candidates, Date.now(), this.#options.unschedulableMs, Math.random());
      if (chosen === null) return null;
      const claimed = await this.#claim(chosen, pod);
      if (claimed !== null) return claimed;
    }
  }

  /** Not cancelled half-way: the API server may have done it. */
  async #claim(chosen: Pod, pod: Pod): Promise<Pod | null> {
    const { uid = "", name } = chosen.metadata;
    this.#taken.add(uid);
    let waiting: Pod | null = chosen;
    for (let attempts = 0; waiting !== null && attempts < CLAIM_ATTEMPTS; attempts++) {
      try {
        const claimed = await this.#api.patch<Pod>(this.#pods.path(name), claimOf(waiting, pod));
        this.#pods.put(claimed);
        return claimed;
      } catch (error) {
        if (!isKubernetesError(error, 404, 409)) {
          this.#taken.delete(uid);
          throw error;
        }
        const now: Pod | null = await this.#api.find<Pod>(this.#pods.path(name));
        if (now === null) this.#pods.remove(chosen);
        else this.#pods.put(now);
        // The answer to the first request may have been lost.
        if (now !== null && stateOf(now)?.attempt === stateOf(pod)?.attempt) return now;
        waiting = now !== null && isWaiting(now) && now.metadata.uid === uid ? now : null;
      }
    }
    this.#taken.delete(uid);
    return null;
  }

  /** Removes a waiting pod, so that there is room for a sandbox. False if none waits. */
  async makeRoom(): Promise<boolean> {
    this.#pausedUntil = Date.now() + PAUSE_MS;
    for (;;) {
      const [pod] = this.#waiting();
      if (pod === undefined) return false;
      if (await this.#remove(pod)) return true;
    }
  }

  /** Creates the pods that are missing, and removes those that are of no use. Never rejects. */
  fill(): Promise<void> {
    this.#filling ??= this.#fill()
      .catch((error: unknown) => this.#options.log?.(`the pool of waiting pods is not filled: ${String(error)}`))
      .finally(() => {
        this.#filling = null;
      });
    return this.#filling;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearInterval(this.#timer);
    await this.#filling;
    if (this.#options.isShared) return;
    // No other server can have claimed them, and a pod that just starts changes all the time.
    const removals = this.#waiting().map(({ metadata: { name, uid = "" } }) =>
      this.#api.delete(this.#pods.path(name), { uid, graceSeconds: 0 }),
    );
    await Promise.allSettled(removals);
  }

  async #fill(): Promise<void> {
    if (this.#isClosed) return;
    await this.#pods.listed();
    this.#isListed = true;
    const now = Date.now();
    const { limits, unschedulableMs } = this.#options;
    for (const pod of this.#waiting()) {
      const kind = this.#kindOf(digestOf(pod) ?? "");
      if (usabilityOf(pod, now, unschedulableMs) !== "useless") continue;
      kind.pausedUntil = now + PAUSE_MS;
      await this.#remove(pod);
    }
    const uses = [...this.#kinds].map(([digest, { demand }]) => ({ digest, perSecond: demand.perSecond(now), usedAt: demand.usedAt }));
    const budget = await this.#budget(now);
    const limited = new Set<string>();
    const fit = (digest: string, wanted: number) => {
      const pod = this.#kindOf(digest).made?.waiting("") ?? this.#waiting().find((one) => digestOf(one) === digest);
      const count = pod === undefined ? wanted : budget.take(pod, wanted);
      if (count < wanted) limited.add(digest);
      return count;
    };
    for (const [digest, target] of targetsOf(uses, limits, now, fit)) {
      const waiting = this.#waiting().filter((pod) => digestOf(pod) === digest);
      const isIdle = now - this.#kindOf(digest).demand.usedAt >= limits.idleMs;
      if (waiting.length > target) await this.#shrink(waiting, target, isIdle || limited.has(digest));
      else await this.#grow(digest, target - waiting.length);
      if (target === 0 && isIdle) this.#kinds.delete(digest);
    }
  }

  /** The quotas are read at most once a round. Without them, the pool only makes room when a quota refuses a sandbox. */
  async #budget(now: number): Promise<QuotaBudget> {
    const { namespace, roundMs = ROUND_MS, log } = this.#options;
    if (this.#kinds.size > 0 && now >= this.#quotasReadAt + roundMs) {
      this.#quotasReadAt = now;
      try {
        this.#quotas = { quotas: await listQuotas(this.#api, namespace), pods: this.#countedPods() };
        this.#quotaProblem = "";
      } catch (error) {
        const problem = messageOf(error);
        if (problem !== this.#quotaProblem) log?.(`the quotas of namespace ${namespace} are not known: ${problem}`);
        this.#quotaProblem = problem;
      }
    }
    return new QuotaBudget(this.#quotas, this.#quotas.quotas.length === 0 ? [] : this.#countedPods().filter((pod) => !isWaiting(pod)));
  }

  /** Quotas do not count pods that have ended. */
  #countedPods(): Pod[] {
    return this.#pods.all().filter((pod) => !hasTerminated(pod));
  }

  /** Other servers may want more pods to wait than this one. Those that are of no use to any server are removed, whoever created them. */
  async #shrink(waiting: readonly Pod[], target: number, isForAll: boolean): Promise<void> {
    for (const pod of surplusOf(waiting, target)) if (isForAll || this.#own.has(pod.metadata.uid ?? "")) await this.#remove(pod);
  }

  async #grow(digest: string, missing: number): Promise<void> {
    const kind = this.#kindOf(digest);
    if (kind.made === null || Date.now() < Math.max(kind.pausedUntil, this.#pausedUntil)) return;
    const names = freeNames(digest, missing, (name) => this.#pods.find(name) !== null);
    for (const name of names) {
      if (this.#isClosed) return;
      try {
        const created = await this.#api.create<Pod>(this.#pods.path(), kind.made.waiting(name));
        this.#own.add(created.metadata.uid ?? "");
        this.#pods.put(created);
        this.#options.onCreated?.(created);
      } catch (error) {
        // Another server was faster.
        if (isKubernetesError(error, 409)) continue;
        kind.pausedUntil = Date.now() + PAUSE_MS;
        // What else is wrong is the same for the next sandbox, whose creator hears of it.
        if (isKubernetesError(error) && !isQuotaRefusal(error)) this.#options.log?.(`no pod waits for sandboxes: ${error.message}`);
        return;
      }
    }
  }

  /** False if it has changed: another server may have it now. */
  async #remove(pod: Pod): Promise<boolean> {
    const { name, uid = "", resourceVersion = "" } = pod.metadata;
    this.#taken.add(uid);
    const isRemoved = await this.#api.delete(this.#pods.path(name), { uid, resourceVersion, graceSeconds: 0 });
    if (isRemoved) this.#pods.remove(pod);
    else {
      const now = await this.#api.find<Pod>(this.#pods.path(name));
      if (now === null) this.#pods.remove(pod);
      else this.#pods.put(now);
      this.#taken.delete(uid);
    }
    return isRemoved;
  }

  #waiting(): Pod[] {
    const isFree = ({ metadata: { uid = "", deletionTimestamp } }: Pod) => deletionTimestamp === undefined && !this.#taken.has(uid);
    return this.#pods.all().filter((pod) => isWaiting(pod) && isFree(pod));
  }

  #kindOf(digest: string): Kind {
    let kind = this.#kinds.get(digest);
    if (kind === undefined) {
      kind = { made: null, demand: new PodDemand(Date.now()), pausedUntil: 0 };
      this.#kinds.set(digest, kind);
    }
    return kind;
  }
}
