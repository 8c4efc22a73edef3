import { isPlatformError, messageOf } from "@aenv/contract";
import type { Sandbox, WarmKind } from "@aenv/sandbox";
import type { WarmDemand } from "./allocation.ts";
import type { BundleRequest, WarmEnvironment } from "./start-request.ts";
import type { StoredSandbox } from "./stored-sandbox.ts";

export interface WarmBundle extends Pick<BundleRequest, "folder" | "variables" | "egress" | "runtime" | "template" | "resources"> {
  readonly environment: WarmEnvironment;
}

/** Warm processes of one kind: blank ones, or ones that have loaded the same bundle. */
export interface WarmSet {
  /** The loaded bundle; null for blank processes. */
  readonly bundle: WarmBundle | null;
  /** How many are kept ready without demand. Only the newest version of an environment has a reserve. */
  reserve: number;
  /** The largest recent number of claims made together, and until when as many are kept ready. */
  burst: { readonly size: number; readonly until: number };
  /** The stored process that new ones are copies of; null if the environment does not ask for that. */
  readonly stored: StoredSandbox | null;
}

export type WarmProcesses = WarmKind<WarmSet, Sandbox>;

export function newWarmSet(bundle: WarmSet["bundle"], reserve: number, stored: WarmSet["stored"]): WarmSet {
  return { bundle, reserve, burst: { size: 0, until: 0 }, stored };
}

/** Null for blank processes, which belong to the platform. */
export function ownerOf(set: WarmSet | undefined): string | null {
  return set?.bundle?.environment.owner ?? null;
}

/** `name@version`; null for blank processes. */
export function environmentOf({ bundle }: WarmSet): string | null {
  return bundle === null ? null : `${bundle.environment.name}@${bundle.environment.version}`;
}

/** Upper estimate of the time to replace a claimed process. */
const REPLACE_MS = 500;
/** A single claim minutes ago is no demand. */
const IGNORED = 0.001;

export function demandOf({ name, demand, spec }: WarmProcesses, now: number): WarmDemand {
  const { reserve, burst } = spec;
  const demanded = demand.expected(now, REPLACE_MS, IGNORED);
  return { name, owner: ownerOf(spec), demanded, reserve, burst: now < burst.until ? burst.size : 0 };
}

/** Whether nobody needs the set. Blank processes can always be needed. */
export function isUnused(processes: WarmProcesses, now: number): boolean {
  const { demanded, reserve, burst } = demandOf(processes, now);
  return processes.spec.bundle !== null && demanded + reserve + burst === 0;
}

/** An instance that was forked is likely to be forked again at its next steps. After this time the next fork is not expected any more. */
const BURST_KEPT_MS = 120_000;

/** Records that a claim is one of `size` claims made together. */
export function noteBurst(set: WarmSet, size: number, now: number): void {
  if (size <= 1) return;
  const last = now < set.burst.until ? set.burst.size : 0;
  set.burst = { size: Math.max(size, last), until: now + BURST_KEPT_MS };
}

/** A text that is the same for repeated failures of one cause; messages may contain the id of a process. */
export function causeOf(error: unknown): string {
  if (!isPlatformError(error)) return messageOf(error);
  return `${error.code}: ${typeof error.details.reason === "string" ? error.details.reason : error.message}`;
}
