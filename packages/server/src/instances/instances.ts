import { setTimeout as pause } from "node:timers/promises";
import {
  assertVariables,
  type CreateInstanceRequest,
  type ForkFidelity,
  isPlatformError,
  PlatformError,
  parseSnapshotRef,
  type ResetRequest,
  type SnapshotRequest,
  type Variables,
} from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import { isInScope } from "../access/scopes.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import { ownVariables } from "../hub/publishing/own-variables.ts";
import type { MemoryGate } from "../slots/memory-gate.ts";
import { isProgram } from "../slots/program.ts";
import type { Scheduler } from "../slots/scheduler.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import { mergeVariables, platformVariables } from "../slots/variables.ts";
import type { ReadySnapshot, SnapshotRow } from "../snapshots/row.ts";
import type { Snapshots } from "../snapshots/snapshots.ts";
import { assertSameCode, startableWith } from "../snapshots/start-request.ts";
import type { Collection } from "../stores/collection.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import { Forks } from "./forks.ts";
import { Freezer, type FreezerTotals } from "./freezer.ts";
import { assertRemembered, type Idempotency } from "./idempotency.ts";
import { InstanceTable, type InstanceTableOptions } from "./instance-table.ts";
import { asContinued, asReplica, expiryOf, type NewRowOptions, newInstanceRow } from "./new-row.ts";
import type { RequestContext } from "./request-context.ts";
import { type InstanceRow, isLive, isSettled, LIVE, slotOf, withEvent, withStatus } from "./row.ts";
import { SandboxEvents } from "./sandbox-events.ts";
import type { Secrets } from "./secrets.ts";
import { Starter } from "./starter.ts";
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
  readonly freezeMeasureMs?: number;
  readonly memoryGate?: MemoryGate;
  readonly secrets: Secrets;
  readonly snapshots: Snapshots;
  /** Waits until no process of this server passes calls to an instance that has ended. */
  readonly onEnded?: (id: string) => Promise<void> | undefined;
}

export interface ReplicaSpec extends Pick<InstanceRow, "id" | "owner" | "environment"> {
  readonly service: string;
  readonly variables: Variables;
  /** Variables that the service sets. */
  readonly platformVariables: Variables;
  /** The limit of the token that created the service. */
  readonly maxInstances: number | null;
}

/** The life cycle of instances. The row is written before the sandbox exists, so that after a crash recovery finds all of them. */
export class Instances {
  readonly #options: InstancesOptions;
  readonly #table: InstanceTable;
  readonly #starter: Starter;
  readonly #forks: Forks;
  readonly #freezer: Freezer;
  readonly uses: Uses;
  readonly sandboxEvents: SandboxEvents;
  #isDraining = false;

  constructor(options: InstancesOptions) {
    this.#options = options;
    this.#table = new InstanceTable({ ...options, onDue: (row, what) => this.#onDue(row, what) });
    this.#starter = new Starter({ ...options, table: this.#table });
    this.uses = new Uses({
      table: this.#table,
      now: options.now,
      thaw: (row) => void this.#freezer.thaw(row).catch(options.onFailure),
    });
    this.sandboxEvents = new SandboxEvents(this.#table, options.tasks);
    this.#freezer = new Freezer({
      table: this.#table,
      slots: options.slots,
      tasks: options.tasks,
      isInUse: (id) => this.uses.has(id),
      measureMs: options.freezeMeasureMs ?? MEASURE_MS,
      monotonicMs: () => performance.now(),
    });
    this.#forks = new Forks({ ...options, table: this.#table, starter: this.#starter });
  }

  /** Writes the row and begins the start; `started` waits for it. */
  async create(request: CreateInstanceRequest, context: RequestContext): Promise<InstanceRow> {
    this.#assertNotDraining();
    const { hub, idempotency, now } = this.#options;
    const owner = ownerOf(request.owner, context.caller);
    const stored = await this.#storedFor(request, owner, context.caller);
    const ref = stored === null ? request.envName : `${stored.environment.name}@${stored.environment.version}`;
    if (ref === undefined || ref === "") {
      throw new PlatformError("request.invalid", "Invalid request parameters: envName is missing; give 'name' or 'name@version'");
    }
    const environment = await hub.resolve(ref, context.caller);
    if (stored !== null) assertSameCode(stored, environment.bundleDigest);
    assertVariables(request.environment_variables ?? {}, environment);
    const requested = newInstanceRow(environment, request, owner, now(), this.#options);
    const fresh = stored === null ? requested : asContinued(requested, stored);
    const begin = (row: InstanceRow) => this.#begin(environment, request, row, context.caller, { stored });
    if (context.idempotencyKey === undefined) return begin(fresh);

    const reserved = await idempotency.reserve(owner, context.idempotencyKey, request, [fresh.id]);
    const [id = fresh.id] = reserved.instanceIds;
    for (;;) {
      const known = await this.#table.find(id);
      if (known !== null) return known;
      assertRemembered(reserved, now());
      try {
        return await begin({ ...fresh, id });
      } catch (error) {
        // Another request with the same key came first.
        if (!isPlatformError(error, "instance.exists")) throw error;
      }
    }
  }

  /** Begins the start of a service's replica. Access to the environment was checked when the service was created. */
  async createReplica(spec: ReplicaSpec): Promise<void> {
    this.#assertNotDraining();
    const { id, service, owner, variables, maxInstances } = spec;
    const { name, version } = spec.environment;
    const { hub, now } = this.#options;
    const caller: Caller = { owner, roles: new Set(["admin"]), tokenId: null, maxInstances };
    const environment = await hub.resolve(`${name}@${version}`, caller);
    assertVariables(variables, environment);
    const request = { environment_variables: { ...variables } };
    const row = asReplica(newInstanceRow(environment, request, owner, now(), this.#options), id, service);
    await this.#begin(environment, request, row, caller, { platform: spec.platformVariables });
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
    await this.get(id, caller);
    await this.end(id, "deleted by its owner");
  }

  async renew(id: string, ttl: string, caller: Caller): Promise<InstanceRow> {
    const { now } = this.#options;
    expiryOf(ttl, now());
    assertNotReplica(await this.get(id, caller));
    return this.#table.change(id, (row, at) => {
      if (isLive(row)) return { ...withEvent(row, `renewed for ${ttl}`, at), ttl, expiresAt: expiryOf(ttl, at) };
      throw new PlatformError("instance.gone", `instance '${id}' has ended: ${row.reason}`);
    });
  }

  /** Begins a new episode. Aborted when the client disconnects. */
  async reset(id: string, body: ResetRequest, context: RequestContext): Promise<unknown> {
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
    return this.#use(row, async () => {
      const stored = await this.#starter.track(this.#options.snapshots.take({ ...row, slot: slotOf(row) }, request, signal));
      const what = `stored as the snapshot ${stored.name} with its ${stored.fidelity}`;
      await this.#table.change(id, (latest, now) => withEvent(latest, what, now)).catch(() => {});
      return stored;
    });
  }

  async #request(id: string, name: "reset" | "snapshot", body: unknown, { caller, signal }: RequestContext): Promise<unknown> {
    const row = await this.get(id, caller);
    if (name === "snapshot") this.#options.slots.assertCopyable(id, slotOf(row), "state", "stored");
    this.uses.begin(row);
    try {
      return await this.#options.slots.request(slotOf(row), name, body, signal);
    } finally {
      this.uses.end(row);
    }
  }

  /** Forks that continue from the state of the instance: all of them, or none. */
  async fork(id: string, count: number, context: RequestContext, fidelity: ForkFidelity = "state"): Promise<InstanceRow[]> {
    this.#assertNotDraining();
    const parent = await this.get(id, context.caller);
    assertNotReplica(parent);
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

  /** Marks all instances of these servers as ended; the caller destroys their sandboxes. */
  async endAll(serverIds: Iterable<string>, reason: string): Promise<void> {
    const end = (id: string) =>
      this.#table.retryUntilStored(() =>
        this.#table.change(id, (row, now) => withStatus(row, LIVE, "Terminated", reason, now, { reason, slot: null })),
      );
    for (const value of serverIds) {
      let ending: Promise<void>[] = [];
      for await (const { key } of this.#table.rows.each({ index: "liveServer", value })) {
        ending.push(end(key));
        if (ending.length < AT_ONCE) continue;
        await Promise.all(ending);
        ending = [];
      }
      await Promise.all(ending);
    }
  }

  /** Makes this server the one that manages an instance of a dead server. */
  async adopt({ id }: InstanceRow): Promise<void> {
    const { serverId } = this.#options;
    await this.#table.retryUntilStored(() =>
      this.#table.change(id, (row, now) =>
        isLive(row) ? { ...withEvent(row, "adopted from a server that died", now), server: serverId, isFrozen: false } : null,
      ),
    );
  }

  /** Marks an instance as failed that was lost with its server. */
  async failLost(id: string, reason: string): Promise<void> {
    await this.#table.fail(id, new PlatformError("instance.start_failed", reason));
  }

  /** The same for the running forks of one request. */
  async failGroup(group: string, reason: string): Promise<void> {
    for await (const { key, value } of this.#table.rows.each({ index: "group", value: group })) {
      if (value.status === "Running") await this.#table.fail(key, new PlatformError("instance.start_failed", reason), true);
    }
  }

  /** What freezing has saved on this server. */
  get frozenTotals(): FreezerTotals {
    return this.#freezer.totals;
  }

  async find(id: string): Promise<InstanceRow | null> {
    return this.#table.find(id);
  }

  async *live(): AsyncGenerator<InstanceRow> {
    for await (const { value } of this.#table.rows.each({ index: "live", value: "yes" })) yield value;
  }

  /** The live instances in a sandbox, those of other servers included. */
  inSandbox(sandboxId: string): Promise<InstanceRow[]> {
    return this.#table.inSandbox(sandboxId);
  }

  /** Releases the slots of instances of these servers that other servers have ended. */
  async releaseSlots(serverIds: Iterable<string>): Promise<void> {
    const { rows } = this.#table;
    for (const value of serverIds) {
      for await (const { key, value: row } of rows.each({ index: "leaving", value })) {
        if (row.slot !== null) await this.#options.slots.release(row.slot, key);
        await rows.update(key, (latest) => (isLive(latest) ? null : { ...latest, slot: null }));
      }
    }
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

  async #begin(
    environment: EnvironmentVersion,
    request: CreateInstanceRequest,
    requested: InstanceRow,
    caller: Caller,
    { platform = {}, stored = null }: { readonly platform?: Variables; readonly stored?: ReadySnapshot | null },
  ): Promise<InstanceRow> {
    const { quotas, secrets, snapshots } = this.#options;
    // Only the sandbox gets the values: the row has none of them.
    const values = await secrets.resolve(environment, request, requested.owner);
    const secretVariables = [...new Set([...(requested.secretVariables ?? []), ...Object.keys(values)])];
    const args = stored?.programArguments ?? argumentsOf(environment, request);
    const row = {
      ...requested,
      ...(secretVariables.length > 0 && { secretVariables }),
      ...(args.length > 0 && isProgram(environment) && { programArguments: args }),
    };
    quotas.admitCreate(row.owner);
    await this.#table.insert(row, Math.min(quotas.instanceLimit(row.owner), caller.maxInstances ?? Number.MAX_SAFE_INTEGER));
    const initial = {
      id: row.id,
      task: row.task,
      seed: row.seed,
      variables: mergeVariables(
        ownVariables(environment),
        { ...request.environment_variables, ...values },
        { ...platformVariables(row), ...platform },
      ),
      arguments: args,
      ...(request.snapshot !== undefined && stored === null && { snapshot: request.snapshot }),
      sandboxOptions: row.sandboxOptions,
      egress: row.egress?.agent,
      taskSandboxes: row.taskSandboxes,
      ttl: row.ttl,
      labels: row.labels,
    };
    this.#starter.begin(environment, row, initial, {
      hidden: Object.values(values).filter((value) => value !== ""),
      ...(stored !== null && { from: (own, occupy) => snapshots.start(stored, own, occupy) }),
    });
    return row;
  }

  /** The stored snapshot that the request names; null if there is none. */
  async #storedFor(request: CreateInstanceRequest, owner: string, caller: Caller): Promise<ReadySnapshot | null> {
    const ref = parseSnapshotRef(request.snapshot);
    return ref === null ? null : startableWith(await this.#options.snapshots.get(ref, owner, caller), request);
  }

  async #onDue(row: InstanceRow, what: "expire" | "idle" | "freeze"): Promise<void> {
    if (what === "expire") return this.end(row.id, `its time to live of ${row.ttl} was over`);
    if (what === "freeze" && !this.uses.has(row.id)) return this.#freezer.freeze(row);
    if (!this.uses.has(row.id)) return this.end(row.id, `it was idle for ${row.idleSeconds} s`);
    this.uses.touch(row);
  }

  #assertNotDraining(): void {
    if (this.#isDraining)
      throw new PlatformError("server.draining", "this server is shutting down; use another server, or try again later");
  }
}

/** Before a sandbox is frozen, its CPU use is measured for this long. */
const MEASURE_MS = 1_000;
const POLL_MS = 100;
const AT_ONCE = 64;

/** With access control, the owner is that of the token; without, the one that the request names. */
export function ownerOf(named: string | undefined, caller: Caller): string {
  return caller.tokenId === null && named ? named : caller.owner;
}

function argumentsOf({ config }: EnvironmentVersion, request: CreateInstanceRequest): readonly string[] {
  return request.arguments?.length ? request.arguments : (config.deployConfig?.arguments ?? []);
}

/** The number and the life time of replicas are managed by their service. */
function assertNotReplica({ id, service }: InstanceRow): void {
  if (service === undefined) return;
  throw new PlatformError("instance.unsupported", `instance '${id}' is a replica of service '${service}'; change the service instead`);
}

/** An instance that the caller may not see is reported as not found. */
export function maySee(row: InstanceRow, caller: Caller): boolean {
  return isInScope(caller, row.environment.name) && (caller.roles.has("admin") || row.owner === caller.owner);
}
