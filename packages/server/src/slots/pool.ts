import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { isPlatformError, PlatformError, type SandboxOptions } from "@aenv/contract";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import { exitCauseOf, requestSandbox, type SandboxClients } from "../sandboxes/client.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import { allocate, type PoolLimits } from "./allocation.ts";
import { Turns, type Urgency } from "./turns.ts";
import { isSameVariables } from "./variables.ts";
import { demandOf, newWarmSet, noteBurst, troubleAfter, type WarmBundle, type WarmEnvironment, type WarmSet } from "./warm-set.ts";

/** Whether a version is its name's newest, an older one, or deleted. */
export type VersionStatus = "newest" | "superseded" | "gone";

export interface PoolOptions {
  readonly engine: SandboxEngine;
  readonly clients: SandboxClients;
  /** The blank runner's command line. */
  readonly runner: readonly string[];
  /** What every runner finds in its environment. */
  readonly variables: Readonly<Record<string, string>>;
  readonly serverId: string;
  /** Blank processes that always wait. */
  readonly min: number;
  /** How many processes may wait: of each kind, for one owner's environments, and in all. */
  readonly limits: PoolLimits;
  /** Processes that start at the same time: as many as can without slowing each other down. */
  readonly startsAtOnce: number;
  /** What is taken is replaced so much later: whoever took it is about to use it, and a start would slow that down. */
  readonly refillAfterMs: number;
  readonly startTimeoutMs: number;
  readonly memoryMb: number;
  readonly standingOf: (name: string, version: string) => Promise<VersionStatus>;
  /** Told once for each cause why processes cannot be started ahead; null for blank ones. */
  readonly onTrouble: (environment: string | null, error: unknown) => void;
  readonly now: () => number;
}

export interface ClaimSpec {
  /** The unpacked bundle. */
  readonly folder: string;
  readonly digest: string;
  /** What the process is to find in its environment before any of the author's code runs. */
  readonly variables: Readonly<Record<string, string>>;
  /**
   * Set if any process that has loaded the bundle will do, because its state is a value and its variables are those of every instance
   * of the environment; such processes are started ahead.
   */
  readonly environment: WarmEnvironment | null;
  /** What the sandbox itself must be started with; no process that waits will do then. */
  readonly sandboxOptions?: SandboxOptions | undefined;
  /** How many are claimed at the same moment as copies of one instance, this one included. */
  readonly together?: number;
}

const BLANK = "blank";

/**
 * Processes that wait before they are asked for. Blank ones take any bundle; prepared ones have taken one already.
 * Each stock grows and shrinks with what is claimed from it, within the limits of the pool.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #blank: WarmSet;
  readonly #stocks = new Map<string, WarmSet>();
  readonly #turns: Turns;
  readonly #stop = new AbortController();

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#turns = new Turns(options.startsAtOnce);
    this.#blank = newWarmSet(BLANK, null, options.min);
    this.#stocks.set(BLANK, this.#blank);
    this.#retarget();
  }

  /** How many wait, by stock: for metrics. */
  sizes(): ReadonlyMap<string, { readonly ready: number; readonly target: number }> {
    return new Map([...this.#stocks].map(([name, { ready, target }]) => [name, { ready: ready.length, target }]));
  }

  /** How many stocks cannot be filled at present. */
  get troubled(): number {
    return [...this.#stocks.values()].filter(({ trouble }) => trouble !== null).length;
  }

  /** Fills the stocks; answers when the first filling is done. */
  async warmUp(): Promise<void> {
    await Promise.all([...this.#stocks.values()].map((stock) => this.#fill(stock)));
  }

  /** A process with the bundle in it: a prepared one, else a blank one, else a new one. */
  async claim(spec: ClaimSpec, signal: AbortSignal): Promise<Sandbox> {
    const { folder, digest, environment, variables } = spec;
    if (environment !== null) {
      const stock = this.#stockOf(digest, { folder, environment, variables });
      noteBurst(stock, spec.together ?? 1, this.#options.now());
      const prepared = this.#take(stock);
      if (prepared !== null) return prepared;
    }
    if (spec.sandboxOptions !== undefined) return this.#bind(await this.#start("now", signal, spec.sandboxOptions), bundleOf(spec), signal);
    const blank = this.#take(this.#blank);
    try {
      if (blank !== null) return await this.#bind(blank, bundleOf(spec), signal);
    } catch (error) {
      // It may have died while it waited, which is no fault of the bundle's.
      if (!isPlatformError(error, "sandbox.lost")) throw error;
    }
    return this.#bind(await this.#start("now", signal), bundleOf(spec), signal);
  }

  /** Ends what waits in vain or for a version that is no more, and replaces what has died waiting. */
  async trim(): Promise<void> {
    await Promise.all([...this.#stocks.values()].map((stock) => this.#review(stock)));
    this.#retarget();
    const stocks = [...this.#stocks.values()];
    await Promise.all(stocks.map((stock) => this.#shed(stock)));
    // Not awaited: a start may take long, and what else is to be tidied up need not wait for it.
    for (const stock of stocks) void this.#fill(stock);
  }

  async close(): Promise<void> {
    this.#stop.abort(new PlatformError("server.draining", "the server is shutting down"));
    const stocks = [...this.#stocks.values()];
    this.#stocks.clear();
    await Promise.all(
      stocks.map(async (stock) => {
        await stock.filling;
        await endReady(stock, 0);
      }),
    );
  }

  /** Learns whether the version that a stock is of still is one to hold processes for. */
  async #review(stock: WarmSet): Promise<void> {
    if (stock.bundle === null) return;
    const { name, version, warm } = stock.bundle.environment;
    // If the store cannot be asked now, it is asked again in the next round.
    const status = await this.#options.standingOf(name, version).catch(() => null);
    if (status === "gone") await this.#drop(stock);
    else if (status !== null) stock.reserve = status === "newest" ? warm : 0;
  }

  async #shed(stock: WarmSet): Promise<void> {
    const { demanded, reserve, burst } = demandOf(stock, this.#options.now());
    const isOver = stock.bundle !== null && demanded + reserve + burst === 0;
    if (isOver && stock.filling === null) await this.#drop(stock);
    else await endReady(stock, stock.target);
  }

  async #drop(stock: WarmSet): Promise<void> {
    this.#stocks.delete(stock.name);
    await endReady(stock, 0);
  }

  #stockOf(name: string, bundle: WarmBundle): WarmSet {
    const known = this.#stocks.get(name);
    if (known !== undefined && isSameVariables(known.bundle?.variables ?? {}, bundle.variables)) return known;
    const stock = newWarmSet(name, bundle, 0);
    this.#stocks.set(name, stock);
    // The same bundle was published again with other variables: what was prepared with the old ones is of no use.
    if (known !== undefined) void endReady(known, 0).catch(() => {});
    return stock;
  }

  #take(stock: WarmSet): Sandbox | null {
    stock.demand.note(this.#options.now());
    this.#retarget();
    const sandbox = stock.ready.shift() ?? null;
    // Not awaited: whoever claims one need not wait for the next.
    void this.#fill(stock, this.#options.refillAfterMs);
    return sandbox;
  }

  #retarget(): void {
    const now = this.#options.now();
    const stocks = [...this.#stocks.values()];
    const targets = allocate(
      stocks.map((stock) => demandOf(stock, now)),
      this.#options.limits,
    );
    for (const stock of stocks) stock.target = targets.get(stock.name) ?? 0;
  }

  /** Never rejects: why a stock cannot be filled is told to `onTrouble`, and it is tried again after a pause. */
  #fill(stock: WarmSet, afterMs = 0): Promise<void> {
    if (stock.trouble !== null && this.#options.now() < stock.trouble.retryAt) return Promise.resolve();
    stock.filling ??= this.#fillIn(stock, afterMs).finally(() => {
      stock.filling = null;
    });
    return stock.filling;
  }

  /** One at a time: starting many at once would slow down those who wait for an answer now. */
  async #fillIn(stock: WarmSet, afterMs: number): Promise<void> {
    const { signal } = this.#stop;
    try {
      if (afterMs > 0) await pause(afterMs, undefined, { signal, ref: false });
      while (this.#wantsMore(stock)) await this.#add(stock);
      stock.trouble = null;
    } catch (error) {
      if (!signal.aborted) this.#noteTrouble(stock, error);
    }
  }

  /** What is there counts too, not only what should be: surplus is ended in rounds, and until then there is no room for more. */
  #wantsMore(stock: WarmSet): boolean {
    if (this.#stop.signal.aborted || !this.#isKept(stock) || stock.ready.length >= stock.target) return false;
    const { total, perOwner } = this.#options.limits;
    const owner = stock.bundle?.environment.owner ?? null;
    const stocks = [...this.#stocks.values()];
    if (waitingIn(stocks) >= total) return false;
    return owner === null || waitingIn(stocks.filter(({ bundle }) => bundle?.environment.owner === owner)) < perOwner;
  }

  async #add(stock: WarmSet): Promise<void> {
    const { signal } = this.#stop;
    stock.starting++;
    let sandbox: Sandbox;
    try {
      sandbox = await this.#start("ahead", signal);
      if (stock.bundle !== null) await this.#bind(sandbox, { ...bundleOf(stock.bundle), isAhead: true }, signal);
    } finally {
      stock.starting--;
    }
    // It may have been dropped meanwhile.
    if (!this.#isKept(stock) && !signal.aborted) return sandbox.destroy();
    stock.ready.push(sandbox);
    void sandbox.exited.then(async () => {
      const at = stock.ready.indexOf(sandbox);
      if (at < 0) return;
      stock.ready.splice(at, 1);
      await sandbox.destroy().catch(() => {});
    });
  }

  #isKept(stock: WarmSet): boolean {
    return this.#stocks.get(stock.name) === stock;
  }

  #noteTrouble(stock: WarmSet, error: unknown): void {
    const last = stock.trouble;
    stock.trouble = troubleAfter(last, error, this.#options.now());
    if (stock.trouble.cause === last?.cause) return;
    const environment = stock.bundle?.environment;
    this.#options.onTrouble(environment === undefined ? null : `${environment.name}@${environment.version}`, error);
  }

  #start(urgency: Urgency, signal: AbortSignal, sandboxOptions?: SandboxOptions): Promise<Sandbox> {
    const { engine, runner, variables, serverId, startTimeoutMs, memoryMb } = this.#options;
    const id = `runner-${randomBytes(10).toString("hex")}`;
    const spec = {
      id,
      command: runner,
      variables,
      labels: { server: serverId, role: "runner" },
      startTimeoutMs,
      memoryMb,
      ...(sandboxOptions && { sandboxOptions }),
    };
    return this.#turns.run(urgency, () => engine.create(spec, signal), signal);
  }

  async #bind(sandbox: Sandbox, body: BindRequest, signal: AbortSignal): Promise<Sandbox> {
    try {
      const { clients, startTimeoutMs } = this.#options;
      await requestSandbox(clients, sandbox.id, sandbox.address, {
        method: "POST",
        path: "/bind",
        body,
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

interface BindRequest extends Pick<ClaimSpec, "folder" | "variables"> {
  /** Nobody waits for it yet, so it may do more than it must. */
  readonly isAhead: boolean;
}

function bundleOf({ folder, variables }: Pick<ClaimSpec, "folder" | "variables">): BindRequest {
  return { folder, variables, isAhead: false };
}

function waitingIn(stocks: readonly WarmSet[]): number {
  return stocks.reduce((sum, { ready, starting }) => sum + ready.length + starting, 0);
}

async function endReady(stock: WarmSet, from: number): Promise<void> {
  await Promise.all(stock.ready.splice(from).map((sandbox) => sandbox.destroy()));
}
