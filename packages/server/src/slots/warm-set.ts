import { isPlatformError, messageOf, type Variables } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import { pauseAfter } from "../instances/backoff.ts";
import type { WarmDemand } from "./allocation.ts";
import { Demand, demandedSize } from "./demand.ts";

/** The published environment that a stock's processes have loaded. */
export interface WarmEnvironment {
  readonly name: string;
  readonly version: string;
  /** Against whom its waiting processes count. */
  readonly owner: string;
  /** How many its publisher wants to wait at all times: `deployConfig.warm`. */
  readonly warm: number;
}

/** Why a stock cannot be filled now, and when it is tried again. */
export interface Trouble {
  readonly failures: number;
  readonly retryAt: number;
  readonly cause: string;
}

export interface WarmBundle {
  readonly folder: string;
  readonly environment: WarmEnvironment;
  /** What its processes are given when they take the bundle. */
  readonly variables: Variables;
}

/** Processes of one kind that wait: blank ones, or ones that have loaded the same bundle. */
export interface WarmSet {
  readonly name: string;
  /** The bundle that they have loaded; null for blank ones. */
  readonly bundle: WarmBundle | null;
  /** How many are to wait without any demand. Of an environment only once it is known to be its name's newest version. */
  reserve: number;
  target: number;
  readonly ready: Sandbox[];
  /** How many are being started for it. */
  starting: number;
  readonly demand: Demand;
  /** The most that were lately claimed together, and until when as many are to wait. */
  burst: { readonly size: number; readonly until: number };
  filling: Promise<void> | null;
  trouble: Trouble | null;
}

export function newWarmSet(name: string, bundle: WarmSet["bundle"], reserve: number): WarmSet {
  const burst = { size: 0, until: 0 };
  return { name, bundle, reserve, target: reserve, ready: [], starting: 0, demand: new Demand(), burst, filling: null, trouble: null };
}

export function demandOf({ name, bundle, demand, reserve, burst }: WarmSet, now: number): WarmDemand {
  const owner = bundle?.environment.owner ?? null;
  return { name, owner, demanded: demandedSize(demand.perSecond(now)), reserve, burst: now < burst.until ? burst.size : 0 };
}

/** Whoever has forked an instance is likely to fork again, as often as an episode has steps; after this long it is not waited for. */
const BURST_KEPT_MS = 120_000;

/** Notes that a claim is one of so many that were made together. */
export function noteBurst(stock: WarmSet, size: number, now: number): void {
  if (size <= 1) return;
  const last = now < stock.burst.until ? stock.burst.size : 0;
  stock.burst = { size: Math.max(size, last), until: now + BURST_KEPT_MS };
}

/** The next trouble of a stock that could not be filled once more. */
export function troubleAfter(last: Trouble | null, error: unknown, now: number): Trouble {
  const failures = (last?.failures ?? 0) + 1;
  return { failures, retryAt: now + pauseAfter(failures), cause: causeOf(error) };
}

/** What stays the same if the same goes wrong again: messages may name the process that was lost. */
function causeOf(error: unknown): string {
  if (!isPlatformError(error)) return messageOf(error);
  return `${error.code}: ${typeof error.details.reason === "string" ? error.details.reason : error.message}`;
}
