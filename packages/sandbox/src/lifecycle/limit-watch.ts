import type { ReachedLimit } from "../engine/engine.ts";
import type { InitConnection } from "../init/connection.ts";
import type { KnownLimits } from "../spec/limits.ts";
import { PeriodicChecks } from "./periodic-checks.ts";

/** What a sandbox has used so far. Null: not known. */
export interface LimitUse {
  /** How often the kernel ended a process for want of memory, and refused to start one. */
  readonly outOfMemoryKills: number | null;
  readonly processLimitHits: number | null;
  readonly diskFreeKb: number | null;
  /** Open files of the process with the most. */
  readonly openFiles: number | null;
  readonly openFilesLimit: number | null;
}

const STATS_TIMEOUT_MS = 4_000;

/** What the init of a sandbox has measured. */
export async function measuredUse(init: Pick<InitConnection, "stats">): Promise<LimitUse> {
  const stats = await init.stats(AbortSignal.timeout(STATS_TIMEOUT_MS));
  const { oomKills: outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit } = stats;
  return { outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit };
}

type Limit = ReachedLimit["limit"];

/** A file system with less free space than this accepts almost nothing. */
const FULL_KB = 128;

/** The limits that were reached since the last time, with a sentence for the owner of the sandbox. */
export function reachedLimits(before: LimitUse | null, now: LimitUse, limits: KnownLimits): ReadonlyMap<Limit, string> {
  const reached = new Map<Limit, string>();
  const isMore = (name: "outOfMemoryKills" | "processLimitHits") => (now[name] ?? 0) > (before?.[name] ?? 0);
  if (isMore("outOfMemoryKills"))
    reached.set("memory", `the kernel ended a process of the sandbox: no more memory${shown(limits.memoryMb, " MB")}`);
  if (isMore("processLimitHits"))
    reached.set("processes", `the sandbox cannot start more processes and threads${shown(limits.processes, "")}`);
  if (now.diskFreeKb !== null && now.diskFreeKb < FULL_KB)
    reached.set("disk", `the disk of the sandbox is full${shown(limits.diskMb, " MB")}`);
  const { openFiles, openFilesLimit } = now;
  // Programs close and open some while they are counted.
  if (openFiles !== null && openFilesLimit !== null && openFiles >= openFilesLimit * 0.98)
    reached.set("files", `a process of the sandbox cannot open more files (its limit is ${openFilesLimit})`);
  return reached;
}

function shown(limit: number | null | undefined, unit: string): string {
  return limit == null ? "" : ` (its limit is ${limit}${unit})`;
}

export interface LimitWatchOptions<T> {
  readonly periodMs: number;
  /** Null if nothing can have changed, or nothing can be measured now. */
  readonly measure: (sandbox: T) => Promise<LimitUse | null>;
  readonly limitsOf: (sandbox: T) => KnownLimits;
  readonly report: (reached: ReachedLimit) => void;
  readonly now?: () => number;
}

/** The same limit of a sandbox is reported again after this time. */
const AGAIN_MS = 10 * 60_000;

/** Notices limits that sandboxes reach and survive: programs in them fail with messages that seldom mention the limit. */
export class LimitWatch<T extends { readonly id: string }> {
  readonly #options: LimitWatchOptions<T>;
  readonly #checks: PeriodicChecks<T>;
  readonly #last = new WeakMap<T, LimitUse>();
  readonly #reported = new WeakMap<T, Map<Limit, number>>();
  readonly #measuring = new WeakSet<T>();

  constructor(options: LimitWatchOptions<T>) {
    this.#options = options;
    this.#checks = new PeriodicChecks(options.periodMs, (sandbox) => void this.check(sandbox).catch(() => undefined));
  }

  add(sandbox: T): void {
    this.#checks.add(sandbox);
  }

  delete(sandbox: T): void {
    this.#checks.delete(sandbox);
  }

  close(): void {
    this.#checks.close();
  }

  async check(sandbox: T): Promise<void> {
    // A sandbox that is busy may answer late.
    if (this.#measuring.has(sandbox)) return;
    this.#measuring.add(sandbox);
    try {
      const use = await this.#options.measure(sandbox);
      if (use === null) return;
      const reached = reachedLimits(this.#last.get(sandbox) ?? null, use, this.#options.limitsOf(sandbox));
      this.#last.set(sandbox, use);
      for (const [limit, reason] of reached) this.#report(sandbox, limit, reason);
    } finally {
      this.#measuring.delete(sandbox);
    }
  }

  #report(sandbox: T, limit: Limit, reason: string): void {
    const { report, now = Date.now } = this.#options;
    const reported = this.#reported.get(sandbox) ?? new Map<Limit, number>();
    this.#reported.set(sandbox, reported);
    if (now() - (reported.get(limit) ?? Number.NEGATIVE_INFINITY) < AGAIN_MS) return;
    reported.set(limit, now());
    report({ sandboxId: sandbox.id, limit, reason });
  }
}
