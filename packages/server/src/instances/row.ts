import { type ErrorCode, type InstanceStatus, PlatformError, type SandboxOptions } from "@aenv/contract";
import type { SandboxAddress } from "@aenv/sandbox";
import { Collection } from "../stores/collection.ts";
import type { Indexes, Store } from "../stores/store.ts";

/** Where an instance lives: a sandbox, and its slot in it. */
export interface Slot {
  readonly sandboxId: string;
  readonly address: SandboxAddress;
  /** Where the instance's routes begin inside the sandbox. */
  readonly prefix: string;
  /** The sandbox holds this instance alone and goes with it. */
  readonly isOwnSandbox: boolean;
}

export interface InstanceEvent {
  readonly at: string;
  readonly what: string;
}

/** An instance as the store keeps it. Values of variables are not in it: they may be secrets, and only the sandbox needs them. */
export interface InstanceRow {
  readonly id: string;
  /** Opens the agent API and no other. */
  readonly agentKey: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  /** Of the bundle that runs. */
  readonly digest: string;
  readonly status: InstanceStatus;
  /** Why it failed or ended. */
  readonly reason: string | null;
  /** The error of a start that failed, so that whoever asks again with the same key hears the same; null if it once ran. */
  readonly reasonCode: ErrorCode | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
  readonly ttl: string;
  readonly idleSeconds: number | null;
  readonly lastUsedAt: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly task: string | null;
  readonly seed: number;
  readonly datasource: string;
  /** The image that the datasource names, for engines that run images; null without a datasource. */
  readonly image: string | null;
  /** Of an ended instance: a slot that whoever keeps the sandbox has yet to give back. */
  readonly slot: Slot | null;
  /** The server process that starts it and, once it runs, the one that keeps its sandbox. */
  readonly server: string;
  /** Forks that were asked for together: they are there all, or none of them is. */
  readonly group: string | null;
  readonly events: readonly InstanceEvent[];
  /** What was asked for and is not done. */
  readonly warnings?: readonly string[];
  /** What its sandbox is started with, also that of a fork. */
  readonly sandboxOptions?: SandboxOptions;
  /** The service whose replica it is; it has no end of its own then. */
  readonly service?: string;
}

const EVENTS_KEPT = 40;

export const LIVE: readonly InstanceStatus[] = ["Pending", "Creating", "Running"];

export function isLive(row: InstanceRow): boolean {
  return LIVE.includes(row.status);
}

/** Whether it is decided how the start went. */
export function isSettled(row: InstanceRow): boolean {
  return row.status !== "Pending" && row.status !== "Creating";
}

/** The slot of a running instance; why it has none is an error. */
export function slotOf({ id, status, slot, reason }: InstanceRow): Slot {
  if (status === "Running" && slot !== null) return slot;
  if (status === "Creating" || status === "Pending") throw new PlatformError("instance.starting", `instance '${id}' is still starting`);
  if (status === "Failed") throw new PlatformError("instance.failed", `instance '${id}' has failed: ${reason}`);
  throw new PlatformError("instance.gone", `instance '${id}' has ended: ${reason}`);
}

/** What rows are found by. Only live ones count against a quota. */
export function instanceIndexes(row: InstanceRow): Indexes {
  const { name } = row.environment;
  return {
    all: "yes",
    owner: row.owner,
    agent: row.agentKey,
    environment: name,
    ownerEnvironment: `${row.owner}\n${name}`,
    ...(isLive(row) ? liveIndexes(row) : row.slot !== null && { leaving: row.server }),
  };
}

export function instanceRows(store: Store): Collection<InstanceRow> {
  return new Collection(store, "instance", instanceIndexes);
}

function liveIndexes({ owner, server, slot, group, service }: InstanceRow): Indexes {
  return {
    live: "yes",
    liveOwner: owner,
    liveServer: server,
    ...(slot !== null && { sandbox: slot.sandboxId }),
    ...(group !== null && { group }),
    ...(service !== undefined && { service, isReplica: "yes" }),
  };
}

/** The next step of a row's life, or null if it does not stand at `from` any more: someone else has moved it. */
export function moved(
  row: InstanceRow,
  from: readonly InstanceStatus[],
  to: InstanceStatus,
  what: string,
  now: Date,
  change: Partial<InstanceRow> = {},
): InstanceRow | null {
  if (!from.includes(row.status)) return null;
  return { ...noted(row, what, now), status: to, ...change };
}

/** The row with one more line in its story. */
export function noted(row: InstanceRow, what: string, now: Date): InstanceRow {
  const at = now.toISOString();
  return { ...row, updatedAt: at, events: [...row.events.slice(1 - EVENTS_KEPT), { at, what }] };
}
