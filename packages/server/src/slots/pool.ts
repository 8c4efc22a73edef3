import { randomBytes } from "node:crypto";
import { isPlatformError, PlatformError, type Resources, runnerRoutes } from "@aenv/contract";
import { type Sandbox, type SandboxEngine, type SandboxSpec, WarmPool } from "@aenv/sandbox";
import { exitCauseOf, requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import type { SnapshotSpace } from "../sandboxes/snapshot-space.ts";
import { budgetOf, type PoolLimits, stepsOf } from "./allocation.ts";
import { environmentLimits, type LimitedEnvironment } from "./environment-limits.ts";
import { type RunnerFacts, sandboxSpecOf } from "./sandbox-spec.ts";
import type { Scheduler, Urgency } from "./scheduler.ts";
import type { BundleRequest, ProgramRequest, StartRequest } from "./start-request.ts";
import { StoredSandbox } from "./stored-sandbox.ts";
import { isSameVariables } from "./variables.ts";
import { WarmPrograms } from "./warm-programs.ts";
import {
  causeOf,
  demandOf,
  environmentOf,
  isUnused,
  newWarmSet,
  noteBurst,
  ownerOf,
  type WarmBundle,
  type WarmProcesses,
  type WarmSet,
} from "./warm-set.ts";

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

/** Demand is averaged over about the last half-minute. */
const HALF_LIFE_MS = 10_000;

/** The owner of process starts for the platform itself. */
const PLATFORM = "";

/**
 * Warm processes. Blank ones can load any bundle; prepared ones have loaded one already. Each set grows and shrinks with the claims
 * on it, within the limits of the pool.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #warm: WarmPool<WarmSet, Sandbox>;
  readonly #blank: WarmProcesses;
  readonly #programs: WarmPrograms;
  #copies = 0;

  constructor(options: PoolOptions) {
    this.#options = options;
    const { engine, space, limits, onFillFailure: onFailure, now } = options;
    this.#programs = new WarmPrograms({ engine, space, onFailure, now });
    this.#warm = new WarmPool({
      create: ({ spec }, signal) => this.#prepare(spec, signal),
      destroy: (sandbox) => sandbox.destroy(),
      ended: ({ exited }) => exited,
      steps: (all, at) =>
        stepsOf(
          all.map((one) => demandOf(one, at)),
          limits.each,
        ),
      budget: () => budgetOf(limits, (name) => ownerOf(this.#warm.find(name)?.spec)),
      hasRoom: ({ spec }) => this.#hasRoom(ownerOf(spec)),
      isUnused,
      forget: async ({ stored }) => stored?.drop(),
      onFailure: ({ spec }, error, last) => {
        if (last === null || causeOf(last.error) !== causeOf(error)) onFailure(environmentOf(spec), error);
      },
      halfLifeMs: HALF_LIFE_MS,
      now,
    });
    this.#blank = this.#warm.add(BLANK, newWarmSet(null, options.min, null));
    this.#warm.retarget();
  }

  /** Number of ready processes by set, for metrics. */
  sizes(): ReadonlyMap<string, { readonly ready: number; readonly target: number }> {
    return new Map(this.#warm.kinds.map(({ name, held, target }) => [name, { ready: held.length, target }]));
  }

  /** How many processes were started as copies of a stored one, for metrics. */
  get copies(): number {
    return this.#copies + this.#programs.copies;
  }

  /** How many sets cannot be filled at present. */
  get failingSets(): number {
    return this.#warm.kinds.filter(({ failure }) => failure !== null).length;
  }

  /** The limits of processes whose environment asks for no others. */
  get resources(): NonNullable<PoolOptions["resources"]> {
    return this.#options.resources ?? {};
  }

  /** The limits that an environment asks for; undefined for those of blank processes. More than the operator allows is an error. */
  resourcesFor(environment: LimitedEnvironment): Resources | undefined {
    return environmentLimits(environment, this.#options.engine, this.resources);
  }

  /** Fills all sets once. */
  warmUp(): Promise<void> {
    return this.#warm.fillAll();
  }

  /** A process with the bundle in it: a prepared one, else a blank one, else a new one. */
  async claim(request: BundleRequest, signal: AbortSignal): Promise<Sandbox> {
    const sandbox = await this.#claim(request, signal);
    // Not awaited: nothing depends on it.
    if (request.subject !== undefined) void sandbox.shared?.describe(request.subject).catch(() => {});
    return sandbox;
  }

  async #claim(request: BundleRequest, signal: AbortSignal): Promise<Sandbox> {
    const { digest, environment, runtime, template, resources } = request;
    if (environment === null || this.#needsNew(request)) return this.#load(request, signal);
    const name = [digest, runtime, template, resources && JSON.stringify(resources)].filter((one) => one !== undefined).join(" ");
    const processes = this.#processesOf(name, { ...request, environment });
    noteBurst(processes.spec, request.together ?? 1, this.#options.now());
    const prepared = this.#take(processes) ?? (await this.#copy(processes.spec, request.owner, "now", signal));
    if (prepared !== null) return prepared;
    const sandbox = await this.#load(request, signal);
    // It is stored before an instance is created in it.
    await processes.spec.stored?.store(sandbox);
    return sandbox;
  }

  /** Only a new sandbox can have a policy, if the engine does not change that of one that runs. */
  #needsNew({ egress, runtime }: BundleRequest): boolean {
    if (egress === undefined || egress === "none") return false;
    const { engine } = this.#options;
    return engine.egress?.changes !== true || (engine.egress.problem?.(["none", egress], runtime) ?? null) !== null;
  }

  /** A blank process, or a new one, that loads the bundle. */
  async #load(request: BundleRequest, signal: AbortSignal): Promise<Sandbox> {
    const startNew = async () => {
      const { egress, ...bundle } = bundleOf(request);
      const own = { ...request, egress: egress === "none" ? undefined : egress };
      return this.#bind(await this.#start(own, "now", signal), bundle, signal);
    };
    const { sandboxOptions, snapshot, runtime, template, resources, second, mounts } = request;
    // Blank processes have none of these.
    const special = { sandboxOptions, snapshot, runtime, template, resources, second, mounts };
    if (this.#needsNew(request) || Object.values(special).some((one) => one !== undefined)) return startNew();
    const blank = this.#take(this.#blank);
    try {
      if (blank !== null) return await this.#bind(blank, bundleOf(request), signal);
    } catch (error) {
      // The process may have died while it was idle, which is not the bundle's fault.
      if (!isPlatformError(error, "sandbox.lost")) throw error;
    }
    return startNew();
  }

  /** A sandbox that runs a program; with `warmAs`, a copy of one that was stored when it answered. */
  program(request: ProgramRequest, signal: AbortSignal): Promise<Sandbox> {
    const { warmAs, folder: _, variables, runtime, second, mounts, ...common } = request;
    const { owner, program, egress, resources } = common;
    const start = () => this.#start(request, "now", signal);
    if (warmAs === undefined || second !== undefined || mounts !== undefined) return start();
    return this.#programs.start({
      environment: warmAs,
      inputs: [warmAs, owner, program, variables, egress, runtime, resources],
      start,
      copy: (snapshot) => this.copy({ ...common, snapshot }, signal),
      signal,
    });
  }

  /**
   * A copy of a sandbox, from a snapshot with its memory: the bundle is loaded and the instances are there, or the program runs, if it is
   * given.
   */
  copy(request: StartRequest & { readonly snapshot: string }, signal: AbortSignal): Promise<Sandbox> {
    return this.#start(request, "now", signal);
  }

  /** Destroys processes without demand or of deleted versions, and replaces those that died while idle. */
  async trim(): Promise<void> {
    await Promise.all(this.#warm.kinds.map((processes) => this.#review(processes)));
    await this.#warm.trim();
    await this.#programs.trim();
    // Not awaited: a start may take long, and the rest of the maintenance need not wait for it.
    void this.#warm.fillAll();
  }

  async close(): Promise<void> {
    await Promise.all([this.#warm.close(new PlatformError("server.draining", "the server is shutting down")), this.#programs.close()]);
  }

  /** Updates the reserve of a set by the status of its version. */
  async #review(processes: WarmProcesses): Promise<void> {
    const set = processes.spec;
    if (set.bundle === null) return;
    const { name, version, warm } = set.bundle.environment;
    // While the store is unavailable the reserve stays; the next round tries again.
    const status = await this.#options.versionStatus(name, version).catch(() => null);
    if (status === "gone") await this.#warm.drop(processes);
    else if (status !== null) set.reserve = status === "newest" ? warm : 0;
  }

  #processesOf(name: string, bundle: WarmBundle): WarmProcesses {
    const known = this.#warm.find(name);
    if (known !== null && isSameVariables(known.spec.bundle?.variables ?? {}, bundle.variables) && isSameEgress(known.spec.bundle, bundle))
      return known;
    const processes = this.#warm.add(name, newWarmSet(bundle, 0, this.#storedOf(bundle)));
    // The same bundle was published again with other variables or another policy: processes prepared with the old ones are of no use.
    if (known !== null) void this.#warm.drop(known).catch(() => {});
    return processes;
  }

  #storedOf({ environment: { name, version, warmStart } }: WarmBundle): StoredSandbox | null {
    const { engine, space, onFillFailure } = this.#options;
    if (!warmStart) return null;
    const onFailure = (error: unknown) => onFillFailure(`${name}@${version}`, error);
    return new StoredSandbox({ engine, space, onFailure, onCopy: () => this.#copies++, stop: this.#warm.signal });
  }

  #take(processes: WarmProcesses): Sandbox | null {
    const sandbox = this.#warm.take(processes);
    this.#warm.retarget();
    // Not awaited: the claim does not wait for the replacement.
    void this.#warm.fill(processes, this.#options.refillAfterMs);
    return sandbox;
  }

  /** The ready processes count, not only the targets: surplus is destroyed in rounds, and takes room until then. */
  #hasRoom(owner: string | null): boolean {
    const { total, perOwner } = this.#options.limits;
    const sum = (some: readonly WarmProcesses[]) => some.reduce((count, { held, creating }) => count + held.length + creating, 0);
    const all = this.#warm.kinds;
    return sum(all) < total && (owner === null || sum(all.filter(({ spec }) => ownerOf(spec) === owner)) < perOwner);
  }

  async #prepare(set: WarmSet, signal: AbortSignal): Promise<Sandbox> {
    const { bundle } = set;
    if (bundle === null) return this.#start({ owner: PLATFORM }, "ahead", signal);
    const { environment, folder, runtime, template, resources } = bundle;
    const { owner } = environment;
    const copied = await this.#copy(set, owner, "ahead", signal);
    if (copied !== null) return copied;
    const subject = { environment: environment.name, version: environment.version };
    const sandbox = await this.#start({ owner, runtime, template, resources, subject, folder }, "ahead", signal);
    await this.#bind(sandbox, { ...bundleOf(bundle), isAhead: true }, signal);
    await set.stored?.store(sandbox);
    return sandbox;
  }

  /** A copy of the stored process of a set; null if there is none. */
  async #copy({ stored, bundle }: WarmSet, owner: string, urgency: Urgency, signal: AbortSignal): Promise<Sandbox | null> {
    const like = { owner, egress: bundle?.egress, resources: bundle?.resources };
    const start = (snapshot: string) => this.#start({ ...like, snapshot }, urgency, signal);
    return stored === null ? null : stored.copy(start, signal);
  }

  #start(request: StartRequest, urgency: Urgency, signal: AbortSignal): Promise<Sandbox> {
    const { owner } = request;
    const { engine, scheduler } = this.#options;
    const run = (one: SandboxSpec) => scheduler.run({ kind: "process starts", owner, urgency }, () => engine.create(one, signal), signal);
    const spec = sandboxSpecOf(`runner-${randomBytes(10).toString("hex")}`, request, this.#options);
    if (urgency === "ahead") return run({ ...spec, isAhead: true });
    return run(spec).catch(async (error: unknown) => {
      // Processes that only wait make room for one that is needed.
      if (!isPlatformError(error, "sandbox.no_capacity") || signal.aborted || !(await this.#warm.makeRoom())) throw error;
      return run(spec);
    });
  }

  async #bind(sandbox: Sandbox, { egress, ...body }: BindRequest, signal: AbortSignal): Promise<Sandbox> {
    try {
      // A process that was started ahead has no outgoing connections.
      if (egress !== undefined && egress !== "none") await sandbox.egress?.set(egress);
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
interface BindRequest extends Pick<BundleRequest, "folder" | "variables" | "egress"> {
  /** No caller waits, so the process also warms up. */
  readonly isAhead: boolean;
}

function bundleOf({ folder, variables, egress }: Pick<BundleRequest, "folder" | "variables" | "egress">): BindRequest {
  return { folder, variables, egress, isAhead: false };
}

function isSameEgress(one: Pick<StartRequest, "egress"> | null, other: Pick<StartRequest, "egress">): boolean {
  return JSON.stringify(one?.egress) === JSON.stringify(other.egress);
}
