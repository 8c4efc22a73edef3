import { setTimeout as pause } from "node:timers/promises";
import {
  type CreateInstanceRequest,
  type ForkFidelity,
  isPlatformError,
  PlatformError,
  type ResetRequest,
  type SnapshotRequest,
} from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import { isInScope } from "../access/scopes.ts";
import type { Hub } from "../hub/hub.ts";
import type { HeldModels } from "../models/held-models.ts";
import type { ModelPolicy } from "../models/model-policy.ts";
import type { MemoryGate } from "../slots/memory-gate.ts";
import type { Scheduler } from "../slots/scheduler.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import type { SnapshotRow } from "../snapshots/row.ts";
import type { Snapshots } from "../snapshots/snapshots.ts";
import type { Collection } from "../stores/collection.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import { Creations, type OpenedInstance, type ReplicaSpec, type WantedChild } from "./creations.ts";
import { Forks } from "./forks.ts";
import { Freezer, type FreezerTotals } from "./freezer.ts";
import { Handover } from "./handover.ts";
import type { Idempotency } from "./idempotency.ts";
import { InstanceTable, type InstanceTableOptions } from "./instance-table.ts";
import { expiryOf, type NewRowOptions } from "./new-row.ts";
import type { RequestContext } from "./request-context.ts";
import { type InstanceRow, isLive, isSettled, LIVE, slotOf, withEvent, withStatus } from "./row.ts";
import type { RunningCommands } from "./running-commands.ts";
import { SandboxEvents } from "./sandbox-events.ts";
import type { Secrets } from "./secrets.ts";
import { Starter } from "./starter.ts";
import { Trees } from "./trees.ts";
import { Uses } from "./uses.ts";
import { waitAtMost } from "./wait-at-most.ts";

export interface InstancesOptions extends NewRowOptions, Pick<InstanceTableOptions, "now" | "onChange" | "onRead" | "onFailure" | "shown"> {
  readonly rows: Collection<InstanceRow>;
  readonly idempotency: Idempotency;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly scheduler: Scheduler;
  readonly slots: Slots;
  readonly tasks: TaskSandboxes;
  readonly runningCommands?: Pick<RunningCommands, "has">;
  readonly freezeMeasureMs?: number;
  readonly memoryGate?: MemoryGate;
  readonly secrets: Secrets;
  readonly modelPolicy: Pick<ModelPolicy, "urlProblem">;
  readonly heldModels: HeldModels;
  /** Whether an owner is an administrator; true for all if access is off. */
  readonly isAdministrator: (owner: string) => Promise<boolean>;
  readonly snapshots: Snapshots;
  /** Waits until no process of this server passes calls to an instance that has ended. */
  readonly onEnded?: (id: string) => Promise<void> | undefined;
}

/** The life cycle of instances. The row is written before the sandbox exists, so that after a crash recovery finds all of them. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #table: InstanceTable;
  readonly #starter: Starter;
  readonly #creations: Creations;
  readonly #forks: Forks;
  readonly #freezer: Freezer;
  readonly uses: Uses;
  readonly sandboxEvents: SandboxEvents;
  readonly handover: Handover;
  #isDraining = false;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#table = new InstanceTable({
      ...options,
      onDue: (row, what) => this.#onDue(row, what),
      onChange: (row, before) => {
        options.onChange(row, before);
        if (row.hasChildren === true && !isLive(row) && before !== null && isLive(before))
          void this.#endChildren(row.id, `its parent has ended: ${row.reason}`).catch(options.onFailure);
      },
    });
    this.#starter = new Starter({ ...options, table: this.#table });
    this.uses = new Uses({
      table: this.#table,
      now: options.now,
      thaw: (row) => void this.#freezer.thaw(row).catch(options.onFailure),
    });
    this.sandboxEvents = new SandboxEvents(this.#table, options.tasks);
    this.handover = new Handover(this.#table, options.slots, options.serverId);
    this.#freezer = new Freezer({
      table: this.#table,
      slots: options.slots,
      tasks: options.tasks,
      isInUse: (id) => this.uses.has(id),
      measureMs: options.freezeMeasureMs ?? MEASURE_MS,
      monotonicMs: () => performance.now(),
    });
    const trees = new Trees({ ...options, table: this.#table });
    this.#creations = new Creations({ ...options, table: this.#table, starter: this.#starter, trees });
    this.#forks = new Forks({ ...options, table: this.#table, starter: this.#starter, trees });
  }

  /** An event of a start in progress. */
  noteStart(id: string, what: string): void {
    this.#starter.note(id, what);
  }

  /** Writes the row and begins the start; `started` waits for it. */
  async create(request: CreateInstanceRequest, context: RequestContext): Promise<InstanceRow> {
    this.#assertNotDraining();
    return this.#creations.create(request, context);
  }

  /** Begins the start of a service's replica. */
  async createReplica(spec: ReplicaSpec): Promise<void> {
    this.#assertNotDraining();
    await this.#creations.createReplica(spec);
  }

  /** Starts a child for an episode of its parent, and waits until it runs. */
  async openChild(parent: InstanceRow, wanted: WantedChild, signal: AbortSignal): Promise<OpenedInstance> {
    this.#assertNotDraining();
    const opened = await this.#creations.openChild(parent, wanted, signal);
    const above = await this.#table.find(parent.id);
    if (above !== null && isLive(above) && !signal.aborted) return opened;
    await this.end(opened.row.id, "its parent had ended when it was ready");
    throw signal.aborted ? signal.reason : new PlatformError("instance.gone", `instance '${parent.id}' has ended`);
  }

  /** The live children of an instance. */
  async #endChildren(parentId: string, reason: string): Promise<void> {
    const ids: string[] = [];
    for await (const { key } of this.#table.rows.each({ index: "parent", value: parentId })) ids.push(key);
    await Promise.all(ids.map((id) => this.end(id, reason)));
  }

  /** Ends children whose parent is not live any more: the server that ended it may have died before it ended them. */
  async collectChildren(): Promise<void> {
    const parents = new Map<string, boolean>();
    for await (const { key, value } of this.#table.rows.each({ index: "isChild", value: "yes" })) {
      const { parent = "" } = value;
      if (!parents.has(parent)) {
        const row = await this.#table.find(parent);
        parents.set(parent, row !== null && isLive(row));
      }
      if (parents.get(parent) === false) await this.end(key, "its parent has ended");
    }
  }

  /** The instance once it runs, or its current row when the time is over. A failed start is an error. */
  async started(id: string, limitMs: number, caller: Caller, signal?: AbortSignal): Promise<InstanceRow> {
    const starting = this.#starter.find(id);
    if (starting !== null) return (await waitAtMost(starting, limitMs)) ?? this.get(id, caller);
    const row = await this.untilSettled(id, limitMs, caller, signal);
    if (row.status === "Failed" && row.reasonCode !== null) throw new PlatformError(row.reasonCode, row.reason ?? "the start failed");
    return row;
  }

  /** The row once its start has succeeded or failed, or the current row when the time is over. */
  async untilSettled(id: string, limitMs: number, caller: Caller, signal?: AbortSignal): Promise<InstanceRow> {
    const over = performance.now() + limitMs;
    for (;;) {
      signal?.throwIfAborted();
      const row = await this.get(id, caller);
      const left = over - performance.now();
      if (isSettled(row) || left <= 0) return row;
      const starting = this.#starter.find(id);
      // A start on this server can be awaited; one on another server is polled.
      if (starting === null) await pause(Math.min(left, POLL_MS));
      else await waitAtMost(starting, left).catch(() => {});
    }
  }

  async get(id: string, caller: Caller): Promise<InstanceRow> {
    const row = await this.#table.find(id);
    if (row === null || !maySee(row, caller)) throw new PlatformError("instance.not_found", `instance '${id}' not found`);
    return row;
  }

  /** Ends an instance. Ending one that has already ended is no error. */
  async destroy(id: string, caller: Caller): Promise<void> {
    assertNotChild(await this.get(id, caller), "deleted");
    await this.end(id, "deleted by its owner");
  }

  async renew(id: string, ttl: string, caller: Caller): Promise<InstanceRow> {
    const { now } = this.#options;
    expiryOf(ttl, now());
    const row = await this.get(id, caller);
    assertNotReplica(row);
    assertNotChild(row, "renewed");
    return this.#table.change(id, (row, at) => {
      if (isLive(row)) return { ...withEvent(row, `renewed for ${ttl}`, at), ttl, expiresAt: expiryOf(ttl, at) };
      throw new PlatformError("instance.gone", `instance '${id}' has ended: ${row.reason}`);
    });
  }

  /** Begins a new episode. Aborted when the client disconnects. */
  async reset(id: string, body: ResetRequest, context: RequestContext): Promise<unknown> {
    assertNotChild(await this.get(id, context.caller), "reset");
    const answer = await this.#request(id, "reset", body, context);
    await this.#table.change(id, (latest, now) => withEvent(latest, "reset", now));
    return answer;
  }

  /** The state of the instance, as a value. */
  snapshot(id: string, context: RequestContext): Promise<unknown> {
    return this.#request(id, "snapshot", {}, context);
  }

  /** Stores a snapshot of the instance, which goes on. */
  async store(id: string, request: SnapshotRequest, { caller, signal }: RequestContext): Promise<SnapshotRow> {
    this.#assertNotDraining();
    const row = await this.get(id, caller);
    assertStorable(row, request);
    return this.#use(row, async () => {
      const stored = await this.#starter.track(this.#options.snapshots.take({ ...row, slot: slotOf(row) }, request, signal));
      const what = `stored as the snapshot ${stored.name} with its ${stored.fidelity}`;
      await this.#table.change(id, (latest, now) => withEvent(latest, what, now)).catch(() => {});
      return stored;
    });
  }

  async #request(id: string, name: "reset" | "snapshot", body: unknown, { caller, signal }: RequestContext): Promise<unknown> {
    const row = await this.get(id, caller);
    this.uses.begin(row);
    try {
      if (name === "snapshot") await this.#options.slots.sandboxCopies.assertCopyable(id, slotOf(row), "state", "stored", signal);
      return await this.#options.slots.request(slotOf(row), name, body, signal);
    } finally {
      this.uses.end(row);
    }
  }

  /** Forks that continue from where the instance is: all of them, or none. */
  async fork(id: string, count: number, context: RequestContext, fidelity?: ForkFidelity): Promise<InstanceRow[]> {
    this.#assertNotDraining();
    const parent = await this.get(id, context.caller);
    assertNotReplica(parent);
    assertNotChild(parent, "forked");
    return this.#use(parent, () => this.#forks.fork(parent, count, fidelity, context));
  }

  /** Copies an instance while it is neither frozen nor idle: the copy would be frozen too, and the engine cannot freeze it at the same time. */
  async #use<T>(row: InstanceRow, copy: () => Promise<T>): Promise<T> {
    this.uses.begin(row);
    try {
      await this.#freezer.settle(row);
      return await copy();
    } finally {
      this.uses.end(row);
    }
  }

  /** Ends a live instance for a reason and releases its slot. */
  async end(id: string, reason: string, to: "Terminated" | "Failed" = "Terminated"): Promise<void> {
    const { slots } = this.#options;
    const above = await this.#table.find(id);
    if (above?.hasChildren === true && isLive(above)) await this.#endChildren(id, "its parent is ending");
    let slot = null as Slot | null;
    let frozen = null as InstanceRow | null;
    try {
      await this.#table.change(id, (row, now) => {
        slot = row.slot;
        frozen = row.isFrozen === true ? row : null;
        // A slot in another server's sandbox stays in the row until that server has released it.
        const isOwn = slot === null || slots.holds(slot.sandboxId);
        return withStatus(row, LIVE, to, reason, now, { reason, ...(isOwn && { slot: null }) });
      });
    } catch (error) {
      if (isPlatformError(error, "instance.not_found")) return;
      throw error;
    }
    // A frozen program would not see that it shall end.
    if (frozen !== null) await this.#freezer.thaw(frozen).catch(() => {});
    await Promise.all([this.#options.onEnded?.(id), slot !== null && slots.release(slot, id)]);
  }

  /** What freezing has saved on this server. */
  get frozenTotals(): FreezerTotals {
    return this.#freezer.totals;
  }

  async find(id: string): Promise<InstanceRow | null> {
    return this.#table.find(id);
  }

  /** The live instances in a sandbox, those of other servers included. */
  inSandbox(sandboxId: string): Promise<InstanceRow[]> {
    return this.#table.inSandbox(sandboxId);
  }

  sweep(): Promise<void> {
    return this.#table.sweep();
  }

  /** Refuses new instances from now on. */
  refuseNew(): void {
    this.#isDraining = true;
  }

  /** Waits up to `graceMs` for starts, then aborts them. Instances do not expire by this server any more. */
  async close(graceMs: number): Promise<void> {
    this.refuseNew();
    await this.#starter.close(graceMs);
  }

  async #onDue(row: InstanceRow, what: "expire" | "idle" | "freeze"): Promise<void> {
    if (what === "expire") return this.end(row.id, `its time to live of ${row.ttl} was over`);
    // A command goes on without its client, and without the server that has started it.
    if (this.uses.has(row.id) || (await this.#options.runningCommands?.has(row))) return this.uses.touch(row);
    if (what === "freeze") return this.#freezer.freeze(row);
    await this.end(row.id, `it was idle for ${row.idleSeconds} s`);
  }

  #assertNotDraining(): void {
    if (this.#isDraining)
      throw new PlatformError("server.draining", "this server is shutting down; use another server, or try again later");
  }
}

/** Before a sandbox is frozen, its CPU use is measured for this long. */
const MEASURE_MS = 1_000;
const POLL_MS = 100;

/** The number and the life time of replicas are managed by their service. */
function assertNotReplica({ id, service }: InstanceRow): void {
  if (service === undefined) return;
  throw new PlatformError("instance.unsupported", `instance '${id}' is a replica of service '${service}'; change the service instead`);
}

/** A child belongs to an episode of its parent, and begins, goes on and ends with that. */
function assertNotChild({ id, parent, path }: InstanceRow, what: string): void {
  if (parent === undefined) return;
  throw new PlatformError(
    "instance.unsupported",
    `instance '${id}' is the child '${path}' of another instance, and is not ${what} alone; do it with its root`,
  );
}

/** The second container of a module is the business of its kit, which refuses what it cannot store. */
function assertStorable({ id, slot, taskSandboxes, hasChildren }: InstanceRow, { fidelity = "state" }: SnapshotRequest): void {
  if (hasChildren === true && fidelity !== "state")
    throw new PlatformError(
      "snapshot.unsupported",
      `instance '${id}' cannot be stored with its ${fidelity}: its children would be missing; store its state`,
    );
  if (slot?.program === undefined || taskSandboxes?.hasSecond !== true) return;
  throw new PlatformError(
    "instance.unsupported",
    `instance '${id}' cannot be stored: the files of its second container would be missing; copy those that you need with 'aenv cp ${id}.second:PATH'`,
  );
}

/** An instance that the caller may not see is reported as not found. */
export function maySee(row: InstanceRow, caller: Caller): boolean {
  return isInScope(caller, row.environment.name) && (caller.roles.has("admin") || row.owner === caller.owner);
}
