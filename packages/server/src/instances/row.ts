import {
  type ErrorCode,
  type ForkFidelity,
  type InstanceEvent,
  type InstanceStatus,
  PlatformError,
  type SandboxOptions,
  type StartedFrom,
} from "@aenv/contract";
import type { StoredModels } from "../models/stored-model.ts";
import type { Slot } from "../slots/slot.ts";
import { Collection } from "../stores/collection.ts";
import type { Indexes, Store } from "../stores/store.ts";
import type { TaskSandboxPolicy } from "../task-sandboxes/policy.ts";
import type { InstanceEgress } from "./egress.ts";

/** An instance in the store. Values of variables are not stored: they may be secrets, and only the sandbox needs them. */
export interface InstanceRow {
  readonly id: string;
  /** Gives access to the agent API only. */
  readonly agentKey: string;
  /** The secret of the links of its roles; absent in rows of earlier versions. */
  readonly linkSecret?: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  /** Digest of the bundle. */
  readonly digest: string;
  readonly status: InstanceStatus;
  /** Why it failed or ended. */
  readonly reason: string | null;
  /** Error code of a failed start, returned again to a request with the same idempotency key; null if the instance ever ran. */
  readonly reasonCode: ErrorCode | null;
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly expiresAt: string;
  readonly ttl: string;
  readonly idleSeconds: number | null;
  readonly lastUsedAt: string;
  /** Its sandbox is frozen when it was not used for so long; null or absent: never. */
  readonly freezeSeconds?: number | null;
  /** Its sandbox is frozen, or is about to be: the next call continues it. */
  readonly isFrozen?: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly task: string | null;
  readonly seed: number;
  readonly datasource: string;
  /** The image that the datasource names, for engines that run images; null without a datasource. */
  readonly image: string | null;
  /** Its slot; for an ended instance, one that the server of its sandbox has yet to release. */
  readonly slot: Slot | null;
  /** Id of the server that starts it and, once it runs, of the server that manages its sandbox. */
  readonly server: string;
  /** Instances of one request, such as forks or a tree: all of them start, or none. Decides only while one of them has never run. */
  readonly group: string | null;
  readonly events: readonly InstanceEvent[];
  /** Requested options that are ignored. */
  readonly warnings?: readonly string[];
  /** Options of its sandbox, also for forks. */
  readonly sandboxOptions?: SandboxOptions;
  /** What a fork continues with. */
  readonly forkFidelity?: ForkFidelity;
  /** The stored snapshot that it continues from. */
  readonly startedFrom?: StartedFrom;
  /** Policies for outgoing connections, also for forks; undefined on engines that do not restrict them. */
  readonly egress?: InstanceEgress;
  /** The sandboxes that its code may open, also for forks; undefined if its environment declares none. */
  readonly taskSandboxes?: TaskSandboxPolicy;
  /** The models that its code may call, by name, also for forks. */
  readonly models?: StoredModels;
  /** Set if some of them came with keys, which a server has in its memory under this id. */
  readonly heldModels?: string;
  /** Its process is connected to the platform, also in forks: its code may send requests to it. */
  readonly platformLink?: boolean;
  /** Variables whose values are secrets, also in forks: files and memory of its sandbox may contain them. */
  readonly secretVariables?: readonly string[];
  /** The arguments of its program, if it has any, also for forks and snapshots. Environments for the runner report their own. */
  readonly programArguments?: readonly string[];
  /** The token that created it: without a token of its own, a caller reaches it only while this one is valid. Absent without access control. */
  readonly tokenId?: string;
  /** The service whose replica it is; a replica does not expire. */
  readonly service?: string;
  /** Its environment uses others, whose instances belong to its episodes. */
  readonly hasChildren?: true;
  /** The instance to whose episode it belongs, and that at the top of the tree; absent for roots. */
  readonly parent?: string;
  readonly root?: string;
  /** Its names below the root: `shop/user`. */
  readonly path?: string;
  /** The episode of its parent; absent until that episode has begun. */
  readonly episode?: string;
}

const EVENTS_KEPT = 40;

export const LIVE: readonly InstanceStatus[] = ["Pending", "Creating", "Running"];

export function isLive(row: InstanceRow): boolean {
  return LIVE.includes(row.status);
}

/** Whether the start has succeeded or failed. */
export function isSettled(row: InstanceRow): boolean {
  return row.status !== "Pending" && row.status !== "Creating";
}

/** The slot of a running instance; an error if it does not run. */
export function slotOf({ id, status, slot, reason }: InstanceRow): Slot {
  if (status === "Running" && slot !== null) return slot;
  if (status === "Creating" || status === "Pending") throw new PlatformError("instance.starting", `instance '${id}' is still starting`);
  if (status === "Failed") throw new PlatformError("instance.failed", `instance '${id}' has failed: ${reason}`);
  throw new PlatformError("instance.gone", `instance '${id}' has ended: ${reason}`);
}

/** Only live instances count against a quota. */
export function instanceIndexes(row: InstanceRow): Indexes {
  const { name } = row.environment;
  return {
    all: "yes",
    owner: row.owner,
    agent: row.agentKey,
    environment: name,
    ...(row.root !== undefined && { root: row.root }),
    ownerEnvironment: `${row.owner}\n${name}`,
    ...(isLive(row) ? liveIndexes(row) : row.slot !== null && { leaving: row.server }),
  };
}

export function instanceRows(store: Store): Collection<InstanceRow> {
  return new Collection(store, "instance", instanceIndexes);
}

function liveIndexes({ owner, server, slot, group, service, isFrozen, parent }: InstanceRow): Indexes {
  return {
    live: "yes",
    liveOwner: owner,
    liveServer: server,
    ...(slot !== null && { sandbox: slot.sandboxId }),
    ...(group !== null && { group }),
    ...(parent !== undefined && { parent, isChild: "yes" }),
    ...(isFrozen === true && { frozen: "yes" }),
    ...(service !== undefined && { service, isReplica: "yes" }),
  };
}

/** The row with a new status, or null if its status is not one of `from` any more: another change came first. */
export function withStatus(
  row: InstanceRow,
  from: readonly InstanceStatus[],
  to: InstanceStatus,
  what: string,
  now: Date,
  change: Partial<InstanceRow> = {},
): InstanceRow | null {
  if (!from.includes(row.status)) return null;
  return { ...withEvent(row, what, now), status: to, ...change };
}

/** The row with one more event. */
export function withEvent(row: InstanceRow, what: string, now: Date): InstanceRow {
  const at = now.toISOString();
  return { ...row, updatedAt: at, events: [...row.events.slice(1 - EVENTS_KEPT), { at, what }] };
}
