import { messageOf } from "@aenv/contract";
import type { Budget } from "../../pool/share.ts";
import { type WarmKind, WarmPool } from "../../pool/warm-pool.ts";
import type { KubernetesApi } from "../api/client.ts";
import { isKubernetesError } from "../api/error.ts";
import { isQuotaRefusal } from "../failures.ts";
import { hasTerminated } from "../pod/progress.ts";
import { stateOf } from "../pod/state.ts";
import type { Pod } from "../pod/types.ts";
import type { PodTable } from "../pods.ts";
import { listQuotas } from "../quota.ts";
import { QuotaBudget, type SeenQuotas } from "./budget.ts";
import { claimOf, digestOf, freeName, isWaiting, type PodKind } from "./kind.ts";
import { choose, type PoolLimits, stepsOf, surplusOf, usabilityOf } from "./plan.ts";

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

interface KindSpec {
  /** Null if only other servers have made such pods: they cannot be made here. */
  podKind: PodKind | null;
}

const ROUND_MS = 10_000;
/** A kind is not filled for this time after a failure, and none is after a pod had to make room. */
const PAUSE_MS = 30_000;
const HALF_LIFE_MS = 20_000;
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
  readonly #pool: WarmPool<KindSpec, Pod>;
  /** Kinds of which the quotas have no room for all that should wait. */
  readonly #limited = new Set<string>();
  /** Names that the API server has refused since the last round. */
  readonly #refused = new Set<string>();
  /** Uids of pods that this server is claiming or removing. */
  readonly #taken = new Set<string>();
  /** Uids of pods whose use was counted. */
  readonly #counted = new Set<string>();
  /** Uids of waiting pods that this server has created. */
  readonly #own = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #isListed = false;
  #pausedUntil = 0;
  #quotas: SeenQuotas = { quotas: [], pods: [] };
  #quotasReadAt = 0;
  #quotaProblem = "";
  #filling: Promise<void> | null = null;

  constructor(api: KubernetesApi, pods: PodTable, options: PodPoolOptions) {
    this.#api = api;
    this.#pods = pods;
    this.#options = options;
    const { limits } = options;
    this.#pool = new WarmPool({
      create: ({ name, spec }) => this.#create(name, spec.podKind),
      destroy: async (pod) => void (await this.#remove(pod)),
      steps: (kinds, now) => stepsOf(kinds, limits, now),
      budget: () => this.#budget(),
      hasRoom: ({ spec }) => spec.podKind !== null && Date.now() >= this.#pausedUntil,
      isUnused: ({ demand }, now) => demand.isIdle(now, limits.idleMs),
      surplus: (kind) => this.#surplus(kind),
      waiting: (digest) => this.#waiting(digest),
      onFailure: (_, error) => this.#report(error),
      halfLifeMs: HALF_LIFE_MS,
      backoff: { firstMs: PAUSE_MS, longestMs: PAUSE_MS },
      now: Date.now,
    });
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
    this.#kindOf(kind.digest).spec.podKind = kind;
    for (;;) {
      signal.throwIfAborted();
      const chosen = choose(this.#waiting(kind.digest), Date.now(), this.#options.unschedulableMs, Math.random());
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
    clearInterval(this.#timer);
    await this.#pool.close(new Error("the pool is closed"));
    await this.#filling;
    if (this.#options.isShared) return;
    // No other server can have claimed them, and a pod that just starts changes all the time.
    const removals = this.#waiting().map(({ metadata: { name, uid = "" } }) =>
      this.#api.delete(this.#pods.path(name), { uid, graceSeconds: 0 }),
    );
    await Promise.allSettled(removals);
  }

  async #fill(): Promise<void> {
    if (this.#pool.signal.aborted) return;
    await this.#pods.listed();
    this.#isListed = true;
    const now = Date.now();
    for (const pod of this.#waiting()) {
      const kind = this.#kindOf(digestOf(pod) ?? "");
      if (usabilityOf(pod, now, this.#options.unschedulableMs) !== "useless") continue;
      this.#pool.postpone(kind, new Error(`pod ${pod.metadata.name} does not start`));
      await this.#remove(pod);
    }
    await this.#readQuotas(now);
    this.#limited.clear();
    this.#refused.clear();
    await this.#pool.trim();
    await this.#pool.fillAll();
  }

  /** The quotas are read at most once a round. Without them, the pool only makes room when a quota refuses a sandbox. */
  async #readQuotas(now: number): Promise<void> {
    const { namespace, roundMs = ROUND_MS, log } = this.#options;
    if (this.#pool.kinds.length === 0 || now < this.#quotasReadAt + roundMs) return;
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

  #budget(): Budget {
    const { quotas } = this.#quotas;
    const quotaBudget = new QuotaBudget(this.#quotas, quotas.length === 0 ? [] : this.#countedPods().filter((pod) => !isWaiting(pod)));
    let left = this.#options.limits.total;
    return (digest) => {
      if (left === 0) return false;
      const pod = this.#pool.find(digest)?.spec.podKind?.waiting("") ?? this.#waiting(digest)[0];
      if (pod !== undefined && !quotaBudget.take(pod)) {
        this.#limited.add(digest);
        return false;
      }
      left--;
      return true;
    };
  }

  /** Quotas do not count pods that have ended. */
  #countedPods(): Pod[] {
    return this.#pods.all().filter((pod) => !hasTerminated(pod));
  }

  /** Other servers may want more pods to wait than this one. Those that are of no use to any server are removed, whoever created them. */
  #surplus({ name, target }: WarmKind<KindSpec, Pod>): readonly Pod[] {
    return surplusOf(this.#waiting(name), target).filter(({ metadata: { uid = "" } }) => this.#limited.has(name) || this.#own.has(uid));
  }

  /** Servers that see the same pods choose the same name, and the API server lets one of them win. Null: the pods wait in the cluster. */
  async #create(digest: string, podKind: PodKind | null): Promise<null> {
    if (podKind === null) return null;
    const name = freeName(digest, (one) => this.#refused.has(one) || this.#pods.find(one) !== null);
    try {
      const created = await this.#api.create<Pod>(this.#pods.path(), podKind.waiting(name));
      this.#own.add(created.metadata.uid ?? "");
      this.#pods.put(created);
      this.#options.onCreated?.(created);
    } catch (error) {
      if (!isKubernetesError(error, 409)) throw error;
      // Another server was faster, and its pod counts. Or a pod of this name is still being deleted.
      this.#refused.add(name);
      const theirs = await this.#api.find<Pod>(this.#pods.path(name));
      if (theirs !== null) this.#pods.put(theirs);
    }
    return null;
  }

  /** What else than a quota is wrong is the same for the next sandbox, whose creator hears of it. */
  #report(error: unknown): void {
    if (isKubernetesError(error) && !isQuotaRefusal(error)) this.#options.log?.(`no pod waits for sandboxes: ${error.message}`);
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

  #waiting(digest?: string): Pod[] {
    const isFree = ({ metadata: { uid = "", deletionTimestamp } }: Pod) => deletionTimestamp === undefined && !this.#taken.has(uid);
    const isWanted = (pod: Pod) => digest === undefined || digestOf(pod) === digest;
    return this.#pods.all().filter((pod) => isWaiting(pod) && isWanted(pod) && isFree(pod));
  }

  #kindOf(digest: string): WarmKind<KindSpec, Pod> {
    return this.#pool.find(digest) ?? this.#pool.add(digest, { podKind: null });
  }
}
