import { isPlatformError, messageOf, newInstanceId } from "@aenv/contract";
import type { SeenServices } from "@aenv/sandbox";
import type { ShownText } from "../config/shown-text.ts";
import type { Instances } from "../instances/instances.ts";
import { type InstanceRow, isLive } from "../instances/row.ts";
import type { Collection } from "../stores/collection.ts";
import type { Versioned } from "../stores/store.ts";
import { afterFailure, planSlots } from "./plan.ts";
import { availableOf, type ReplicaSlot, type ServiceRow } from "./row.ts";
import type { Storage } from "./storage.ts";
import type { Workloads } from "./workloads.ts";

export interface ReconcilerOptions {
  readonly rows: Collection<ServiceRow>;
  readonly instanceRows: Collection<InstanceRow>;
  readonly instances: Instances;
  readonly storage: Storage;
  /** Set for an engine that keeps replicas running itself. */
  readonly workloads?: Workloads | undefined;
  readonly now: () => Date;
  /** Removes server paths from the reason of a failure. */
  readonly shown: ShownText;
  /** Called when background work failed; it is retried in the next round. */
  readonly onFailure: (error: unknown) => void;
}

/** A change of a service is followed closely for a while; afterwards the rounds are enough. */
const FOLLOW_MS = 60_000;
const FOLLOW_EVERY_MS = 500;

/** Starts and ends replicas until they are what the rows of their services say. */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  /** Services that are being reconciled here, and whether they changed meanwhile. */
  readonly #running = new Map<string, { isStale: boolean; readonly done: Promise<void> }>();
  /** Services that are looked at again soon. */
  readonly #following = new Map<string, NodeJS.Timeout>();
  #isClosing = false;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** Reconciles every service, and ends replicas of deleted services. */
  async tidy(): Promise<void> {
    const { rows, instanceRows, instances, workloads, onFailure } = this.#options;
    // If the engine does not answer, services that it does not run go on.
    const seen = await workloads?.look().catch(onFailure);
    for await (const { key, value } of rows.each({ index: "all", value: "yes" })) {
      if (this.#isClosing) return;
      if (value.workload !== undefined && value.leaving === null && !seen) continue;
      await this.reconcile(key, seen ?? undefined).catch(onFailure);
    }
    if (seen) await workloads?.removeOrphans(seen);
    for await (const { value } of instanceRows.each({ index: "isReplica", value: "yes" })) {
      if ((await rows.find(value.service ?? "")) === null) await instances.end(value.id, "its service was deleted");
    }
  }

  /** Reconciles a service soon. */
  nudge(id: string): void {
    this.reconcile(id).catch(this.#options.onFailure);
  }

  /** Stops reconciling. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#following.values()) clearTimeout(timer);
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
  }

  /** One run at a time per service; a request during a run causes another run. */
  reconcile(id: string, seen?: SeenServices): Promise<void> {
    const known = this.#running.get(id);
    if (known !== undefined) {
      known.isStale = true;
      return known.done;
    }
    const work = {
      isStale: true,
      done: Promise.resolve().then(async () => {
        try {
          // Only the first look is as new as the request for it.
          for (let at = seen; work.isStale && !this.#isClosing; at = undefined) {
            work.isStale = false;
            await this.#runOnce(id, at);
          }
        } finally {
          this.#running.delete(id);
        }
      }),
    };
    this.#running.set(id, work);
    return work.done;
  }

  async #runOnce(id: string, known?: SeenServices): Promise<void> {
    const { rows, instanceRows, now, workloads } = this.#options;
    const found = await rows.find(id);
    if (found === null) return;
    if (found.value.leaving !== null) return this.#finishDeletion(found);
    if (found.value.workload !== undefined) {
      const isSettled = (await workloads?.reconcile(found, known)) ?? true;
      if (!isSettled) this.#follow(found.value);
      return;
    }
    const seen = await readReplicas(found.value, instanceRows);
    const slots = planSlots(found.value, seen, now(), () => newInstanceId(found.value.environment.name));
    const row = { ...found.value, slots, reason: reasonOf(found.value, seen) };
    if (JSON.stringify(row) !== JSON.stringify(found.value) && !(await rows.swap(found, row))) return this.#runOnce(id);
    await this.#endSurplus(id);
    for (const slot of slots) {
      if (!seen.has(slot.instanceId) && Date.parse(slot.notBefore) <= now().getTime()) await this.#start(row, slot);
    }
  }

  /** Looks at a service again soon, if it was changed a short time ago. */
  #follow({ id, updatedAt }: ServiceRow): void {
    if (this.#following.has(id) || this.#isClosing || this.#options.now().getTime() - Date.parse(updatedAt) > FOLLOW_MS) return;
    const timer = setTimeout(() => {
      this.#following.delete(id);
      this.nudge(id);
    }, FOLLOW_EVERY_MS);
    this.#following.set(id, timer.unref());
  }

  /** Ends replicas without a slot. The row is read after the replicas, because a slot is written before its replica exists. */
  async #endSurplus(id: string): Promise<void> {
    const { rows, instances } = this.#options;
    const live = await this.#liveReplicas(id);
    const wanted = new Set((await rows.find(id))?.value.slots.map(({ instanceId }) => instanceId));
    for (const one of live) if (!wanted.has(one.id)) await instances.end(one.id, "its service no longer needs it");
  }

  async #start(row: ServiceRow, slot: ReplicaSlot): Promise<void> {
    const { instances, rows, storage, now, shown } = this.#options;
    try {
      const folder = row.storage === null ? null : await storage.open(row.owner, row.storage);
      await instances.createReplica({
        ...row,
        service: row.id,
        id: slot.instanceId,
        platformVariables: { AENV_TYPE: "service", ...(folder !== null && { AENV_STORAGE: folder }) },
      });
    } catch (error) {
      // Another server started it, or this one is closing.
      if (this.#isClosing || isPlatformError(error, "instance.exists", "server.draining")) return;
      const later = (one: ReplicaSlot) => (one.instanceId === slot.instanceId ? afterFailure(one, now()) : one);
      await rows.update(row.id, (latest) => ({ ...latest, slots: latest.slots.map(later), reason: shown(messageOf(error)) }));
    }
  }

  async #finishDeletion({ key, rev, value: row }: Versioned<ServiceRow>): Promise<void> {
    const { rows, instances, storage, workloads } = this.#options;
    // A server whose engine runs it deletes it.
    if (row.workload !== undefined && workloads?.holds(row) !== true) return;
    for (const { id } of await this.#liveReplicas(key)) await instances.end(id, "its service was deleted");
    // Another server may have deleted it, and it may have been created again.
    if ((await rows.find(key))?.rev !== rev) return;
    const deletesStorage = row.leaving?.deletesStorage === true && row.storage !== null && !(await this.#isShared(row));
    if (row.workload !== undefined) await workloads?.remove(row, deletesStorage);
    else if (deletesStorage) await storage.remove(row.owner, row.storage as string);
    await rows.remove(key, rev);
  }

  async #isShared({ id, owner, storage }: ServiceRow): Promise<boolean> {
    for await (const { value } of this.#options.rows.each({ index: "owner", value: owner })) {
      if (value.id !== id && value.storage === storage) return true;
    }
    return false;
  }

  async #liveReplicas(id: string): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const { value } of this.#options.instanceRows.each({ index: "service", value: id })) found.push(value);
    return found;
  }
}

/** The instances of a service that exist, by id. */
export async function readReplicas({ slots }: ServiceRow, instanceRows: Collection<InstanceRow>): Promise<Map<string, InstanceRow>> {
  const seen = new Map<string, InstanceRow>();
  for (const { instanceId } of slots) {
    const found = await instanceRows.find(instanceId);
    if (found !== null) seen.set(instanceId, found.value);
  }
  return seen;
}

function reasonOf(row: ServiceRow, seen: ReadonlyMap<string, InstanceRow>): string | null {
  const failed = [...seen.values()].find((one) => one.status === "Failed");
  if (failed !== undefined) return failed.reason;
  const isComplete = availableOf(row, seen) === row.replicas && [...seen.values()].every(isLive);
  return isComplete ? null : row.reason;
}
