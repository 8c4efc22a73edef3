import type { InstanceRow } from "../instances/row.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";

/** One replica of a service: the id of its instance, which is written here before the instance exists. */
export interface Slot {
  readonly instanceId: string;
  /** The generation of the service's settings that the instance was created for. */
  readonly generation: number;
  /** Consecutive failed starts. */
  readonly failures: number;
  /** Earliest time of the next start. */
  readonly notBefore: string;
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
  readonly slots: readonly Slot[];
  /** The name of the persistent folder; null if it has none. */
  readonly storage: string | null;
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
export function statusOf({ replicas, generation, slots }: ServiceRow, available: number): "Creating" | "Updating" | "Running" {
  if (available === 0) return "Creating";
  return available < replicas || slots.some((slot) => slot.generation !== generation) ? "Updating" : "Running";
}

/** The number of running replicas, at most the desired number. */
export function availableOf({ replicas, slots }: ServiceRow, seen: ReadonlyMap<string, InstanceRow>): number {
  return Math.min(replicas, slots.filter(({ instanceId }) => seen.get(instanceId)?.status === "Running").length);
}
