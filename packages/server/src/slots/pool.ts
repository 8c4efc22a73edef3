import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { isPlatformError, PlatformError, runnerRoutes } from "@aenv/contract";
import type { Sandbox, SandboxEngine, SandboxSpec } from "@aenv/sandbox";
import { exitCauseOf, requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { allocate, type PoolLimits } from "./allocation.ts";
import type { ClaimSpec } from "./claim-spec.ts";
import { type EnvironmentLimits, environmentLimits, type LimitedEnvironment } from "./environment-limits.ts";
import type { Program } from "./program.ts";
import { type CopySpec, type ProgramSpec, type RunnerFacts, type StartOptions, sandboxSpecOf } from "./sandbox-spec.ts";
import type { Scheduler, Urgency } from "./scheduler.ts";
import { isSameVariables } from "./variables.ts";
import { WarmPrograms } from "./warm-programs.ts";
import { demandOf, failureAfter, newWarmSet, noteBurst, type WarmBundle, type WarmSet } from "./warm-set.ts";

/** Whether a version is the newest of its environment, an older one, or deleted. */
export type VersionStatus = "newest" | "superseded" | "gone";

export interface PoolOptions extends RunnerFacts {
  readonly engine: SandboxEngine;
  readonly space: SnapshotSpace;
  readonly clients: SandboxClients;
  /** Blank processes that are always kept ready. */
  readonly min: number;
  /** How many processes may be kept ready: per environment, per owner of environments, and in total. */
  readonly limits: PoolLimits;
  readonly scheduler: Scheduler;
  /** A claimed process is replaced after this delay: its first calls come now, and a process start would slow them down. */
  readonly refillAfterMs: number;
  readonly versionStatus: (name: string, version: string) => Promise<VersionStatus>;
  /** Called once for each cause for which processes cannot be started ahead; the environment is null for blank ones. */
  readonly onFillFailure: (environment: string | null, error: unknown) => void;
  readonly now: () => number;
}

const BLANK = "blank";

/** The owner of process starts for the platform itself. */
const PLATFORM = "";

/**
 * Warm processes. Blank ones can load any bundle; prepared ones have loaded one already. Each set grows and shrinks with the claims
 * on it, within the limits of the pool.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #blank: WarmSet;
  readonly #sets = new Map<string, WarmSet>();
  readonly #stop = new AbortController();
  readonly #programs: WarmPrograms;
  #copies = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { engine, space, onFillFailure: onFailure, now } = options;
    this.#programs = new WarmPrograms({ engine, space, onFailure, now });
    this.#blank = newWarmSet(BLANK, null, options.min);
    this.#sets.set(BLANK, this.#blank);
    this.#retarget();
  }

  /** Number of ready processes by set, for metrics. */
  sizes(): ReadonlyMap<string, { readonly ready: number; readonly target: number }> {
    return new Map([...this.#sets].map(([name, { ready, target }]) => [name, { ready: ready.length, target }]));
  }

  /** How many processes were started as copies of a stored one, for metrics. */
  get copies(): number {
    return this.#copies + this.#programs.copies;
  }

  /** How many sets cannot be filled at present. */
  get failingSets(): number {
    return [...this.#sets.values()].filter(({ failure }) => failure !== null).length;
  }

  /** Of processes whose environment asks for no others. */
  get sandboxLimits(): NonNullable<PoolOptions["sandboxLimits"]> {
    return this.#options.sandboxLimits ?? {};
  }

  /** The limits that an environment asks for; undefined for those of blank processes. More than the operator allows is an error. */
  limitsFor(environment: LimitedEnvironment): EnvironmentLimits | undefined {
    return environmentLimits(environment, this.#options.engine, this.sandboxLimits);
  }

  /** Fills all sets once. */
  async warmUp(): Promise<void> {
    await Promise.all([...this.#sets.values()].map((set) => this.#fill(set)));
  }

  /** A process with the bundle in it: a prepared one, else a blank one, else a new one. */
  async claim(spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const sandbox = await this.#claim(spec, signal);
    // Not awaited: nothing depends on it.
    if (spec.subject !== undefined) void sandbox.describe?.(spec.subject).catch(() => {});
    return sandbox;
  }

  async #claim(spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const { folder, digest, environment, variables, egress, runtime, template, limits } = spec;
    let set: WarmSet | null = null;
    if (environment !== null && !this.#needsNew(spec)) {
      const name = [digest, runtime, template, limits && JSON.stringify(limits)].filter((one) => one !== undefined).join(" ");
      set = this.#setOf(name, { folder, environment, variables, egress, runtime, template, limits });
      noteBurst(set, spec.together ?? 1, this.#options.now());
      const prepared = this.#take(set);
      if (prepared !== null) return prepared;
      const copied = await this.#copyStored(set, spec.owner, "now", signal);
      if (copied !== null) return copied;
    }
    const sandbox = await this.#load(spec, signal);
    if (set !== null) await this.#store(set, sandbox);
    return sandbox;
  }

  /** Only a new sandbox can have a policy, if the engine does not change that of one that runs. */
  #needsNew({ egress, runtime }: ClaimSpec): boolean {
    if (egress === undefined || egress === "none") return false;
    const { engine } = this.#options;
    return !engine.can.changesEgress || (engine.egressProblem?.(["none", egress], runtime) ?? null) !== null;
  }

  /** A blank process, or a new one, that loads the bundle. */
  async #load(spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const { sandboxOptions, sandboxSnapshot: snapshot, runtime, template, limits, second, mounts, subject } = spec;
    // Blank processes have none of these.
    const special = { sandboxOptions, snapshot, runtime, template, limits, second, mounts };
    const startNew = async () => {
      const { egress, ...bundle } = bundleOf(spec);
      const options = { ...special, subject, firstFolder: spec.folder, ...(egress !== "none" && { egress }) };
      return this.#bind(await this.#start(spec.owner, "now", signal, options), bundle, signal);
    };
    if (this.#needsNew(spec) || Object.values(special).some((one) => one !== undefined)) return startNew();
    const blank = this.#take(this.#blank);
    try {
      if (blank !== null) return await this.#bind(blank, bundleOf(spec), signal);
    } catch (error) {
      // The process may have died while it was idle, which is not the bundle's fault.
      if (!isPlatformError(error, "sandbox.lost")) throw error;
    }
    return startNew();
  }

  /**
   * A sandbox that runs a program, for one instance; with `snapshot`, in the files of another sandbox. With `warmAs`, the name of its environment,
   * it is a copy of one that was stored when it answered.
   */
  program(
    program: Program,
    { warmAs, ...spec }: Omit<ProgramSpec, "program"> & Pick<StartOptions, "snapshot"> & { readonly warmAs?: string | undefined },
    signal: AbortSignal,
  ): Promise<Sandbox> {
    const { owner, variables, egress, runtime, limits, second, mounts, subject, instanceId } = spec;
    const start = () => this.#start(owner, "now", signal, { ...spec, program });
    if (warmAs === undefined || second !== undefined || mounts !== undefined) return start();
    return this.#programs.start({
      environment: warmAs,
      inputs: [warmAs, owner, program, variables, egress, runtime, limits],
      start,
      copy: (snapshot) => this.copy({ owner, egress, limits, subject, program, instanceId, snapshot }, signal),
      signal,
    });
  }

  /**
   * A copy of a sandbox, from a snapshot with its memory: the bundle is loaded and the instances are there, or the program runs, if it is
   * given.
   */
  copy({ owner, ...spec }: CopySpec, signal: AbortSignal): Promise<Sandbox> {
    return this.#start(owner, "now", signal, spec);
  }

  /** Destroys processes without demand or of deleted versions, and replaces those that died while idle. */
  async trim(): Promise<void> {
    await Promise.all([...this.#sets.values()].map((set) => this.#review(set)));
    this.#retarget();
    const sets = [...this.#sets.values()];
    await Promise.all(sets.map((set) => this.#shrink(set)));
    await this.#programs.trim();
    // Not awaited: a start may take long, and the rest of the maintenance need not wait for it.
    for (const set of sets) void this.#fill(set);
  }

  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down"));
    const sets = [...this.#sets.values()];
    this.#sets.clear();
    await this.#programs.close();
    await Promise.all(
      sets.map(async (set) => {
        await set.filling;
        await this.#dropStored(set);
        await destroyReady(set, 0);
      }),
    );
  }

  /** Updates the reserve of a set by the status of its version. */
  async #review(set: WarmSet): Promise<void> {
    if (set.bundle === null) return;
    const { name, version, warm } = set.bundle.environment;
    // While the store is unavailable the reserve stays; the next round tries again.
    const status = await this.#options.versionStatus(name, version).catch(() => null);
    if (status === "gone") await this.#drop(set);
    else if (status !== null) set.reserve = status === "newest" ? warm : 0;
  }

  async #shrink(set: WarmSet): Promise<void> {
    const { demanded, reserve, burst } = demandOf(set, this.#options.now());
    const isUnused = set.bundle !== null && demanded + reserve + burst === 0;
    if (isUnused && set.filling === null) await this.#drop(set);
    else await destroyReady(set, set.target);
  }

  async #drop(set: WarmSet): Promise<void> {
    this.#sets.delete(set.name);
    await this.#dropStored(set);
    await destroyReady(set, 0);
  }

  #setOf(name: string, bundle: WarmBundle): WarmSet {
    const known = this.#sets.get(name);
    if (known !== undefined && isSameVariables(known.bundle?.variables ?? {}, bundle.variables) && isSameEgress(known.bundle, bundle))
      return known;
    const set = newWarmSet(name, bundle, 0);
    this.#sets.set(name, set);
    // The same bundle was published again with other variables or another policy: processes prepared with the old ones are of no use.
    if (known !== undefined) void Promise.all([destroyReady(known, 0), this.#dropStored(known)]).catch(() => {});
    return set;
  }

  #take(set: WarmSet): Sandbox | null {
    set.demand.note(this.#options.now());
    this.#retarget();
    const sandbox = set.ready.shift() ?? null;
    // Not awaited: the claim does not wait for the replacement.
    void this.#fill(set, this.#options.refillAfterMs);
    return sandbox;
  }

  #retarget(): void {
    const now = this.#options.now();
    const sets = [...this.#sets.values()];
    const targets = allocate(
      sets.map((set) => demandOf(set, now)),
      this.#options.limits,
    );
    for (const set of sets) set.target = targets.get(set.name) ?? 0;
  }

  /** Never rejects: a failure is reported to `onFillFailure` and retried after a backoff. */
  #fill(set: WarmSet, afterMs = 0): Promise<void> {
    if (set.failure !== null && this.#options.now() < set.failure.retryAt) return Promise.resolve();
    set.filling ??= this.#fillSet(set, afterMs).finally(() => {
      set.filling = null;
    });
    return set.filling;
  }

  /** One process at a time: many starts at once would slow down the calls in progress. */
  async #fillSet(set: WarmSet, afterMs: number): Promise<void> {
    const { signal } = this.#stop;
    try {
      if (afterMs > 0) await pause(afterMs, undefined, { signal, ref: false });
      while (this.#needsMore(set)) await this.#add(set);
      set.failure = null;
    } catch (error) {
      if (!signal.aborted) this.#noteFailure(set, error);
    }
  }

  /** The ready processes count as well, not only the targets: surplus is destroyed in rounds, and takes room until then. */
  #needsMore(set: WarmSet): boolean {
    if (this.#stop.signal.aborted || !this.#isCurrent(set) || set.ready.length >= set.target) return false;
    const { total, perOwner } = this.#options.limits;
    const owner = set.bundle?.environment.owner ?? null;
    const sets = [...this.#sets.values()];
    if (readyIn(sets) >= total) return false;
    return owner === null || readyIn(sets.filter(({ bundle }) => bundle?.environment.owner === owner)) < perOwner;
  }

  async #add(set: WarmSet): Promise<void> {
    const { signal } = this.#stop;
    set.starting++;
    let sandbox: Sandbox;
    try {
      sandbox = await this.#prepare(set, signal);
    } finally {
      set.starting--;
    }
    // The set may have been dropped meanwhile.
    if (!this.#isCurrent(set) && !signal.aborted) return sandbox.destroy();
    set.ready.push(sandbox);
    void sandbox.exited.then(async () => {
      const at = set.ready.indexOf(sandbox);
      if (at < 0) return;
      set.ready.splice(at, 1);
      await sandbox.destroy().catch(() => {});
    });
  }

  async #prepare(set: WarmSet, signal: AbortSignal): Promise<Sandbox> {
    const owner = set.bundle?.environment.owner ?? PLATFORM;
    const copied = await this.#copyStored(set, owner, "ahead", signal);
    if (copied !== null) return copied;
    const subject = set.bundle === null ? undefined : { environment: set.bundle.environment.name, version: set.bundle.environment.version };
    const { runtime, template, limits } = set.bundle ?? {};
    const sandbox = await this.#start(owner, "ahead", signal, { runtime, template, limits, subject, firstFolder: set.bundle?.folder });
    if (set.bundle === null) return sandbox;
    await this.#bind(sandbox, { ...bundleOf(set.bundle), isAhead: true }, signal);
    await this.#store(set, sandbox);
    return sandbox;
  }

  /** Stores the first process of a set that has loaded its bundle, before an instance is created in it. */
  async #store(set: WarmSet, sandbox: Sandbox): Promise<void> {
    const { engine, space } = this.#options;
    const take = sandbox.snapshot?.bind(sandbox);
    if (set.bundle?.environment.warmStart !== true || !engine.can.snapshots.includes("memory") || take === undefined) return;
    // Not aborted with the request: others wait for it too.
    const store = () => space.use(() => take("memory", this.#stop.signal));
    set.snapshot ??= store().then(
      ({ id }) => id,
      (error: unknown) => this.#giveUpStored(set, error),
    );
    await set.snapshot;
  }

  /** A copy of the stored process; null if there is none. One that cannot be continued is not used any more. */
  async #copyStored(set: WarmSet, owner: string, urgency: Urgency, signal: AbortSignal): Promise<Sandbox | null> {
    const snapshot = await set.snapshot;
    if (snapshot === null) return null;
    try {
      const copied = await this.#start(owner, urgency, signal, { snapshot, egress: set.bundle?.egress, limits: set.bundle?.limits });
      this.#copies++;
      return copied;
    } catch (error) {
      signal.throwIfAborted();
      set.snapshot = Promise.resolve(this.#giveUpStored(set, error));
      await this.#options.engine.removeSnapshot?.(snapshot).catch(() => {});
      return null;
    }
  }

  /** Processes are started as without `warmStart`. */
  #giveUpStored(set: WarmSet, error: unknown): null {
    const environment = set.bundle?.environment;
    if (environment !== undefined && !this.#stop.signal.aborted)
      this.#options.onFillFailure(`${environment.name}@${environment.version}`, error);
    return null;
  }

  async #dropStored(set: WarmSet): Promise<void> {
    const snapshot = await set.snapshot;
    set.snapshot = null;
    if (snapshot !== null) await this.#options.engine.removeSnapshot?.(snapshot).catch(() => {});
  }

  #isCurrent(set: WarmSet): boolean {
    return this.#sets.get(set.name) === set;
  }

  #noteFailure(set: WarmSet, error: unknown): void {
    const last = set.failure;
    set.failure = failureAfter(last, error, this.#options.now());
    if (set.failure.cause === last?.cause) return;
    const environment = set.bundle?.environment;
    this.#options.onFillFailure(environment === undefined ? null : `${environment.name}@${environment.version}`, error);
  }

  #start(owner: string, urgency: Urgency, signal: AbortSignal, options: StartOptions = {}): Promise<Sandbox> {
    const { engine, scheduler } = this.#options;
    const run = (one: SandboxSpec) => scheduler.run({ kind: "process starts", owner, urgency }, () => engine.create(one, signal), signal);
    const spec = sandboxSpecOf(`runner-${randomBytes(10).toString("hex")}`, options, this.#options);
    if (urgency === "ahead") return run({ ...spec, isAhead: true });
    return run(spec).catch(async (error: unknown) => {
      // Processes that only wait make room for one that is needed.
      if (!isPlatformError(error, "sandbox.no_capacity") || signal.aborted || !(await this.#makeRoom())) throw error;
      return run(spec);
    });
  }

  /** Destroys a process of the set with the fewest claims. False if none is ready. */
  async #makeRoom(): Promise<boolean> {
    const now = this.#options.now();
    const rate = ({ demand }: WarmSet) => demand.perSecond(now);
    const [set] = [...this.#sets.values()].filter(({ ready }) => ready.length > 0).sort((one, other) => rate(one) - rate(other));
    const sandbox = set?.ready.pop();
    if (set === undefined || sandbox === undefined) return false;
    set.failure = failureAfter(set.failure, new Error("another process needed the room"), now);
    await sandbox.destroy();
    return true;
  }

  async #bind(sandbox: Sandbox, { egress, ...body }: BindRequest, signal: AbortSignal): Promise<Sandbox> {
    try {
      // One that was started ahead has no outgoing connections.
      if (egress !== undefined && egress !== "none" && this.#options.engine.can.changesEgress) await sandbox.setEgress?.(egress);
      const { clients, startTimeoutMs } = this.#options;
      const folder = await sandbox.addFolder(body.folder, signal);
      await requestSandbox(clients, sandbox.id, sandbox.address, {
        method: runnerRoutes.bind.method,
        path: runnerRoutes.bind.path,
        body: { ...body, folder },
        timeoutMs: startTimeoutMs,
        maxBytes: responseLimits.bind,
        signal,
      });
      return sandbox;
    } catch (error) {
      const cause = await exitCauseOf(sandbox, error);
      await sandbox.destroy();
      throw cause;
    }
  }
}

/** Without a policy if the process was started with it. */
interface BindRequest extends Pick<ClaimSpec, "folder" | "variables" | "egress"> {
  /** No caller waits, so the process also warms up. */
  readonly isAhead: boolean;
}

function bundleOf({ folder, variables, egress }: Pick<ClaimSpec, "folder" | "variables" | "egress">): BindRequest {
  return { folder, variables, egress, isAhead: false };
}

function isSameEgress(one: Pick<ClaimSpec, "egress"> | null, other: Pick<ClaimSpec, "egress">): boolean {
  return JSON.stringify(one?.egress) === JSON.stringify(other.egress);
}

function readyIn(sets: readonly WarmSet[]): number {
  return sets.reduce((sum, { ready, starting }) => sum + ready.length + starting, 0);
}

async function destroyReady(set: WarmSet, from: number): Promise<void> {
  await Promise.all(set.ready.splice(from).map((sandbox) => sandbox.destroy()));
}
