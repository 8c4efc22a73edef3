import { assertVariables, newKey, PlatformError, splitRef } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Quotas } from "../access/quotas.ts";
import { isInScope } from "../access/scopes.ts";
import { isImageReference } from "../hub/datasource.ts";
import type { Hub } from "../hub/hub.ts";
import { ownerOf } from "../instances/creations.ts";
import type { InstanceRow } from "../instances/row.ts";
import type { Collection } from "../stores/collection.ts";
import { type Reconciler, readReplicas } from "./reconciler.ts";
import { availableOf, type ServiceRow } from "./row.ts";
import type { WorkloadRequest } from "./workload.ts";
import type { Workloads } from "./workloads.ts";

export interface ServicesOptions {
  readonly rows: Collection<ServiceRow>;
  readonly instanceRows: Collection<InstanceRow>;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly reconciler: Reconciler;
  /** Set for an engine that keeps replicas running itself. */
  readonly workloads?: Workloads | undefined;
  readonly now: () => Date;
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

/** Named sets of replicas that are kept alive. The row holds the desired state, and the reconciler makes it true. */
export class Services {
  readonly #options: ServicesOptions;

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
    this.#options.reconciler.nudge(id);
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
    this.#options.reconciler.nudge(id);
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
    await this.#options.reconciler.reconcile(id);
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

  async #get(id: string, caller: Caller): Promise<ServiceRow> {
    const found = await this.#options.rows.find(id);
    if (found === null || found.value.leaving !== null || !maySee(found.value, caller)) throw notFound(id);
    return found.value;
  }

  async #withAvailable(row: ServiceRow): Promise<ServiceState> {
    const { workloads, instanceRows } = this.#options;
    return {
      row,
      available: availableOf(row, await readReplicas(row, instanceRows)),
      ...(workloads?.holds(row) && { engineUrl: workloads.urlOf(row) }),
    };
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
