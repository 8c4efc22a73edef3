import { assertVariables, isPlatformError, messageOf, newInstanceId, newKey, PlatformError, splitRef } from "@aenv/contract";
import type { SeenServices } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import { isInScope } from "../access/scopes.ts";
import { isImageReference } from "../hub/datasource.ts";
import type { Hub } from "../hub/hub.ts";
import { type Instances, ownerOf } from "../instances/instances.ts";
import { type InstanceRow, isLive } from "../instances/row.ts";
import type { ShownText } from "../shown-text.ts";
import type { Collection } from "../stores/collection.ts";
import type { Versioned } from "../stores/store.ts";
import { afterFailure, planSlots } from "./plan.ts";
import { availableOf, type ServiceRow, type Slot } from "./row.ts";
import type { Storage } from "./storage.ts";
import type { WorkloadRequest } from "./workload.ts";
import type { Workloads } from "./workloads.ts";

export interface ServicesOptions {
  readonly rows: Collection<ServiceRow>;
  readonly instanceRows: Collection<InstanceRow>;
  readonly instances: Instances;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly storage: Storage;
  /** For an engine that keeps replicas running itself. */
  readonly workloads?: Workloads | undefined;
  readonly now: () => Date;
  /** Removes server paths from the reason of a failure. */
  readonly shown: ShownText;
  /** Called when background work failed; it is retried in the next round. */
  readonly onFailure: (error: unknown) => void;
}

export interface NewService {
  readonly envName: string;
  readonly id?: string | undefined;
  readonly replicas: number;
  readonly variables: Readonly<Record<string, string>>;
  readonly owner?: string | undefined;
  /** Null for no storage; empty for one named after the environment. */
  readonly storage: string | null;
  /** Only for engines that run containers. */
  readonly container?: WorkloadRequest;
}

export interface ServiceChange {
  readonly replicas?: number | undefined;
  readonly image?: string | undefined;
  readonly variables?: Readonly<Record<string, string>> | undefined;
}

export interface ServiceState {
  readonly row: ServiceRow;
  readonly available: number;
  /** Its address near the engine, if the engine runs it; without a scheme. */
  readonly engineUrl?: string;
}

/** A change of a service is followed closely for a while; afterwards the rounds are enough. */
const FOLLOW_MS = 60_000;
const FOLLOW_EVERY_MS = 500;

/** Named sets of replicas that are kept alive. The row holds the desired state; each round reconciles the replicas with it. */
export class Services {
  readonly #options: ServicesOptions;
  /** Services that are being reconciled here, and whether they changed meanwhile. */
  readonly #running = new Map<string, { isStale: boolean; readonly done: Promise<void> }>();
  /** Services that are looked at again soon. */
  readonly #following = new Map<string, NodeJS.Timeout>();
  #isClosing = false;

  constructor(options: ServicesOptions) {
    this.#options = options;
  }

  async create(service: NewService, caller: Caller): Promise<ServiceState> {
    const { hub, quotas, rows, now, workloads } = this.#options;
    const environment = await hub.resolve(service.envName, caller);
    const { name, version } = environment;
    assertVariables(service.variables, { name, version });
    const owner = ownerOf(service.owner, caller);
    // The name of a Service of Kubernetes begins with a letter.
    const words = workloads === undefined || /^[a-z]/.test(name) ? name : `env-${name}`;
    const id = service.id ?? `${words.slice(0, 38).replace(/-+$/, "")}-svc-${newKey()}`;
    const since = now().toISOString();
    const asked: ServiceRow = {
      id,
      owner,
      environment: { name, version },
      replicas: checkReplicas(service.replicas, service.storage),
      variables: service.variables,
      generation: 1,
      slots: [],
      storage: service.storage === "" ? name : service.storage,
      maxInstances: caller.maxInstances,
      reason: null,
      leaving: null,
      createdAt: since,
      updatedAt: since,
    };
    await this.#assertWithinLimits(asked.replicas, null, owner, caller);
    const row = (await workloads?.admit(asked, environment, service.container ?? {})) ?? asked;
    quotas.admitCreate(owner);
    const max = quotas.instanceLimit(owner);
    const inserted = await rows.insert(id, row, { limit: { index: "owner", value: owner, max } });
    if (inserted === "exists") throw new PlatformError("service.exists", `service '${id}' already exists; choose another name`);
    if (inserted === "limit") throw new PlatformError("quota.exceeded", `Service count exceeds limit: ${max}; delete some`);
    this.nudge(id);
    return this.#withAvailable(row);
  }

  async get(id: string, caller: Caller): Promise<ServiceState> {
    return this.#withAvailable(await this.#get(id, caller));
  }

  /** The caller's services of an environment, `name` or `name@version`, or all. */
  async list(ref: string, caller: Caller): Promise<ServiceState[]> {
    const { name, version } = splitRef(ref);
    const where = caller.roles.has("admin") ? { index: "all", value: "yes" } : { index: "owner", value: caller.owner };
    const found: ServiceState[] = [];
    for await (const { value: row } of this.#options.rows.each(where)) {
      if (!maySee(row, caller) || row.leaving !== null) continue;
      if (name !== "" && row.environment.name !== name) continue;
      if (version !== "" && row.environment.version !== version) continue;
      found.push(await this.#withAvailable(row));
    }
    return found;
  }

  /** Changes the number of replicas, or adds variables, which replaces the replicas. */
  async update(id: string, change: ServiceChange, caller: Caller): Promise<ServiceState> {
    const { rows, now, workloads } = this.#options;
    const known = await this.#get(id, caller);
    const { image } = change;
    if (image !== undefined) assertImage(image, known);
    assertVariables(change.variables ?? {}, known.environment);
    if (change.replicas !== undefined) await this.#assertWithinLimits(change.replicas, known, known.owner, caller);
    const changed = known.workload === undefined ? null : ((await workloads?.changeOf(known, image)) ?? null);
    const row = await rows.update(id, (latest) => {
      if (latest.leaving !== null) return null;
      const replicas = checkReplicas(change.replicas ?? latest.replicas, latest.storage);
      const variables = { ...latest.variables, ...change.variables };
      const isSame = Object.entries(variables).every(([key, value]) => latest.variables[key] === value);
      return {
        ...latest,
        variables,
        replicas,
        ...((image !== undefined || !isSame) &&
          latest.workload !== undefined &&
          changed !== null && { workload: changed(latest.workload) }),
        maxInstances: replicas > latest.replicas ? higherLimit(latest.maxInstances, caller.maxInstances) : latest.maxInstances,
        generation: isSame ? latest.generation : latest.generation + 1,
        updatedAt: now().toISOString(),
      };
    });
    if (row === null) throw notFound(id);
    this.nudge(id);
    return this.#withAvailable(row);
  }

  /** Deletes a service and its replicas, and its storage if requested. A missing service is not an error. */
  async remove(id: string, deletesStorage: boolean, caller: Caller): Promise<void> {
    const found = await this.#options.rows.find(id);
    if (found === null || !maySee(found.value, caller)) return;
    await this.#options.rows.update(id, (row) => ({
      ...row,
      leaving: { deletesStorage: deletesStorage || (row.leaving?.deletesStorage ?? false) },
    }));
    await this.#reconcileSoon(id);
  }

  /** Reconciles every service, and ends replicas of deleted services. */
  async tidy(): Promise<void> {
    const { rows, instanceRows, instances, workloads, onFailure } = this.#options;
    // If the engine does not answer, services that it does not run go on.
    const seen = await workloads?.look().catch(onFailure);
    for await (const { key, value } of rows.each({ index: "all", value: "yes" })) {
      if (this.#isClosing) return;
      if (value.workload !== undefined && value.leaving === null && !seen) continue;
      await this.#reconcileSoon(key, seen ?? undefined).catch(onFailure);
    }
    if (seen) await workloads?.removeOrphans(seen);
    for await (const { value } of instanceRows.each({ index: "isReplica", value: "yes" })) {
      if ((await rows.find(value.service ?? "")) === null) await instances.end(value.id, "its service was deleted");
    }
  }

  /** Reconciles a service soon. */
  nudge(id: string): void {
    this.#reconcileSoon(id).catch(this.#options.onFailure);
  }

  /** Stops reconciling. */
  async close(): Promise<void> {
    this.#isClosing = true;
    for (const timer of this.#following.values()) clearTimeout(timer);
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
  }

  /** One run at a time per service; a request during a run causes another run. */
  #reconcileSoon(id: string, seen?: SeenServices): Promise<void> {
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
            await this.#reconcile(id, at);
          }
        } finally {
          this.#running.delete(id);
        }
      }),
    };
    this.#running.set(id, work);
    return work.done;
  }

  async #reconcile(id: string, known?: SeenServices): Promise<void> {
    const { rows, now, workloads } = this.#options;
    const found = await rows.find(id);
    if (found === null) return;
    if (found.value.leaving !== null) return this.#finishDeletion(found);
    if (found.value.workload !== undefined) {
      const isSettled = (await workloads?.reconcile(found, known)) ?? true;
      if (!isSettled) this.#follow(found.value);
      return;
    }
    const seen = await this.#instancesOf(found.value);
    const slots = planSlots(found.value, seen, now(), () => newInstanceId(found.value.environment.name));
    const row = { ...found.value, slots, reason: reasonOf(found.value, seen) };
    if (JSON.stringify(row) !== JSON.stringify(found.value) && !(await rows.swap(found, row))) return this.#reconcile(id);
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

  async #start(row: ServiceRow, slot: Slot): Promise<void> {
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
      const later = (one: Slot) => (one.instanceId === slot.instanceId ? afterFailure(one, now()) : one);
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

  /** Refuses more replicas than the limits on instances of the owner and of the token allow. */
  async #assertWithinLimits(replicas: number, known: ServiceRow | null, owner: string, { maxInstances }: Caller): Promise<void> {
    const before = known?.replicas ?? 0;
    if (replicas <= before) return;
    const { quotas, instanceRows } = this.#options;
    const refuse = (max: number, whose: string) => {
      throw new PlatformError(
        "quota.exceeded",
        `replicas is ${replicas}; with them '${owner}' would have more instances than ${whose} allows, which is ${max}`,
        {
          retryable: false,
          details: { owner, maxInstances: max },
        },
      );
    };
    const max = quotas.instanceLimit(owner);
    const ofEngine = await this.#replicasOfEngine(owner);
    if (replicas + ofEngine - (known?.workload === undefined ? 0 : before) > max) refuse(max, "this server");
    if (maxInstances === null) return;
    const live = (await instanceRows.count("liveOwner", owner)) + ofEngine;
    if (replicas > maxInstances || live + replicas - before > maxInstances) refuse(maxInstances, "this token");
  }

  /** The replicas of an owner that are no instances. */
  async #replicasOfEngine(owner: string): Promise<number> {
    let count = 0;
    for await (const { value } of this.#options.rows.each({ index: "owner", value: owner }))
      if (value.workload !== undefined) count += value.replicas;
    return count;
  }

  async #isShared({ id, owner, storage }: ServiceRow): Promise<boolean> {
    for await (const { value } of this.#options.rows.each({ index: "owner", value: owner })) {
      if (value.id !== id && value.storage === storage) return true;
    }
    return false;
  }

  async #get(id: string, caller: Caller): Promise<ServiceRow> {
    const found = await this.#options.rows.find(id);
    if (found === null || found.value.leaving !== null || !maySee(found.value, caller)) throw notFound(id);
    return found.value;
  }

  async #withAvailable(row: ServiceRow): Promise<ServiceState> {
    const { workloads } = this.#options;
    return {
      row,
      available: availableOf(row, await this.#instancesOf(row)),
      ...(workloads?.holds(row) && { engineUrl: workloads.urlOf(row) }),
    };
  }

  async #instancesOf(row: ServiceRow): Promise<Map<string, InstanceRow>> {
    const seen = new Map<string, InstanceRow>();
    for (const { instanceId } of row.slots) {
      const found = await this.#options.instanceRows.find(instanceId);
      if (found !== null) seen.set(instanceId, found.value);
    }
    return seen;
  }

  async #liveReplicas(id: string): Promise<InstanceRow[]> {
    const found: InstanceRow[] = [];
    for await (const { value } of this.#options.instanceRows.each({ index: "service", value: id })) found.push(value);
    return found;
  }
}

/** A service of another owner is reported as not found. */
export function maySee(row: ServiceRow, caller: Caller): boolean {
  return isInScope(caller, row.environment.name) && (caller.roles.has("admin") || row.owner === caller.owner);
}

export function notFound(id: string): PlatformError {
  return new PlatformError("service.not_found", `service '${id}' not found`);
}

function assertImage(image: string, { workload }: ServiceRow): void {
  if (workload === undefined)
    throw new PlatformError(
      "instance.unsupported",
      `the image '${image}' cannot be used: the replicas of this service run a published version, not an image; create a service of another version`,
    );
  if (!isImageReference(image))
    throw new PlatformError("request.invalid", `the image '${image}' is not a name in a registry, such as host/team/name:tag`);
}

function checkReplicas(replicas: number, storage: string | null): number {
  if (storage === null || replicas <= 1) return replicas;
  throw new PlatformError("request.invalid", "When creating PVC (storageSize specified), replicas must be 1");
}

/** The higher of two limits; null is unlimited. */
function higherLimit(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : Math.max(one, other);
}

function reasonOf(row: ServiceRow, seen: ReadonlyMap<string, InstanceRow>): string | null {
  const failed = [...seen.values()].find((one) => one.status === "Failed");
  if (failed !== undefined) return failed.reason;
  const isComplete = availableOf(row, seen) === row.replicas && [...seen.values()].every(isLive);
  return isComplete ? null : row.reason;
}
