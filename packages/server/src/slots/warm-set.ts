import { type EgressPolicy, isPlatformError, messageOf, pauseAfter, type Variables } from "@aenv/contract";
import type { Sandbox, SandboxRuntime } from "@aenv/sandbox";
import type { WarmDemand } from "./allocation.ts";
import { Demand, expectedClaims } from "./demand.ts";
import type { EnvironmentLimits } from "./environment-limits.ts";

/** The published environment that the processes of a set have loaded. */
export interface WarmEnvironment {
  readonly name: string;
  readonly version: string;
  /** Its warm processes count against the limit of this owner. */
  readonly owner: string;
  /** How many processes its publisher wants to be ready at all times: `deployConfig.warm`. */
  readonly warm: number;
  /** Whether processes are copies of a stored one: `deployConfig.warmStart`. */
  readonly warmStart: boolean;
}

/** Why a set cannot be filled, and when it is tried again. */
export interface FillFailure {
  readonly failures: number;
  readonly retryAt: number;
  readonly cause: string;
}

export interface WarmBundle {
  readonly folder: string;
  readonly environment: WarmEnvironment;
  /** Environment variables with which its processes load the bundle. */
  readonly variables: Variables;
  readonly egress?: EgressPolicy | undefined;
  readonly runtime?: SandboxRuntime | undefined;
  readonly template?: string | undefined;
  readonly limits?: EnvironmentLimits | undefined;
}

/** Warm processes of one kind: blank ones, or ones that have loaded the same bundle. */
export interface WarmSet {
  readonly name: string;
  /** The loaded bundle; null for blank processes. */
  readonly bundle: WarmBundle | null;
  /** How many are kept ready without demand. Only the newest version of an environment has a reserve. */
  reserve: number;
  target: number;
  readonly ready: Sandbox[];
  /** How many are being started. */
  starting: number;
  readonly demand: Demand;
  /** The largest recent number of claims made together, and until when as many are kept ready. */
  burst: { readonly size: number; readonly until: number };
  filling: Promise<void> | null;
  /** The stored process that new ones are copies of. Null before the first one, and its value if it could not be stored. */
  snapshot: Promise<string | null> | null;
  failure: FillFailure | null;
}

export function newWarmSet(name: string, bundle: WarmSet["bundle"], reserve: number): WarmSet {
  const burst = { size: 0, until: 0 };
  const demand = new Demand();
  return { name, bundle, reserve, target: reserve, ready: [], starting: 0, demand, burst, filling: null, snapshot: null, failure: null };
}

export function demandOf({ name, bundle, demand, reserve, burst }: WarmSet, now: number): WarmDemand {
  const owner = bundle?.environment.owner ?? null;
  return { name, owner, demanded: expectedClaims(demand.perSecond(now)), reserve, burst: now < burst.until ? burst.size : 0 };
}

/** An instance that was forked is likely to be forked again at its next steps. After this time the next fork is not expected any more. */
const BURST_KEPT_MS = 120_000;

/** Records that a claim is one of `size` claims made together. */
export function noteBurst(set: WarmSet, size: number, now: number): void {
  if (size <= 1) return;
  const last = now < set.burst.until ? set.burst.size : 0;
  set.burst = { size: Math.max(size, last), until: now + BURST_KEPT_MS };
}

/** The state of a set after one more failure to fill it. */
export function failureAfter(last: FillFailure | null, error: unknown, now: number): FillFailure {
  const failures = (last?.failures ?? 0) + 1;
  return { failures, retryAt: now + pauseAfter(failures), cause: causeOf(error) };
}

/** A text that is the same for repeated failures of one cause; messages may contain the id of a process. */
function causeOf(error: unknown): string {
  if (!isPlatformError(error)) return messageOf(error);
  return `${error.code}: ${typeof error.details.reason === "string" ? error.details.reason : error.message}`;
}
