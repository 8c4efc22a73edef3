import type { ServiceResources, ServiceStatus } from "@aenv/sandbox";
import type { InstanceRow } from "../instances/row.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";

/** One replica of a service: the id of its instance, which is written here before the instance exists. */
export interface ReplicaSlot {
  readonly instanceId: string;
  /** The generation of the service's settings that the instance was created for. */
  readonly generation: number;
  /** Consecutive failed starts. */
  readonly failures: number;
  /** Earliest time of the next start. */
  readonly notBefore: string;
}

/** What the engine runs for a service, for engines that keep replicas running themselves. */
export interface Workload {
  /** Servers with an engine of this location look after it. */
  readonly location: string;
  readonly image: string;
  /**
   * Set if the program is in the bundle: the image that has the init, which receives it. It is kept, so that servers of two versions do not
   * replace each other's replicas.
   */
  readonly baseImage?: string;
  readonly port: number;
  /** The size of its storage, if it has one. */
  readonly storageSize: string;
  readonly mountPath: string;
  readonly requests: ServiceResources;
  readonly limits: ServiceResources;
  /** What the engine reported last; null at first. */
  readonly status: ServiceStatus | null;
}

/**
 * A stored service. Unlike an instance's row it includes the variables, which are needed to start replicas again.
 */
export interface ServiceRow {
  readonly id: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  /** The desired number of replicas. */
  readonly replicas: number;
  readonly variables: Readonly<Record<string, string>>;
  /** Incremented by changes that need new replicas. */
  readonly generation: number;
  readonly slots: readonly ReplicaSlot[];
  /** The name of the persistent folder; null if it has none. */
  readonly storage: string | null;
  /** Set if the engine keeps the replicas running. Then there are no slots. */
  readonly workload?: Workload;
  /** The highest instance limit of the tokens that created it or raised its replicas. */
  readonly maxInstances: number | null;
  /** The reason of the last failure of a replica. */
  readonly reason: string | null;
  /** Set while it is being deleted, with or without its storage. */
  readonly leaving: { readonly deletesStorage: boolean } | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export function serviceRows(store: Store): Collection<ServiceRow> {
  return new Collection(store, "service", ({ owner, environment: { name } }) => ({ all: "yes", owner, environment: name }));
}

/** The status that clients see, from the number of available replicas. */
export function statusOf({ replicas, generation, slots, workload }: ServiceRow, available: number): "Creating" | "Updating" | "Running" {
  if (available === 0) return "Creating";
  return available < replicas || workload?.status?.isUpdating || slots.some((slot) => slot.generation !== generation)
    ? "Updating"
    : "Running";
}

/** The number of running replicas, at most the desired number. */
export function availableOf({ replicas, slots, workload }: ServiceRow, seen: ReadonlyMap<string, InstanceRow>): number {
  if (workload !== undefined) return Math.min(replicas, workload.status?.available ?? 0);
  return Math.min(replicas, slots.filter(({ instanceId }) => seen.get(instanceId)?.status === "Running").length);
}
