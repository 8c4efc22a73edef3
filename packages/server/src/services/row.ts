import type { InstanceRow } from "../instances/row.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";

/** One of a service's replicas: the instance that is, or is to be, in this place. It is written here before it exists. */
export interface Slot {
  readonly instanceId: string;
  /** The state of the service's settings that it was made for. */
  readonly generation: number;
  /** Starts in this place that failed one after the other. */
  readonly failures: number;
  /** It is not started earlier. */
  readonly notBefore: string;
}

/**
 * A service as the store keeps it. Unlike an instance's, its variables are in it: its replicas are started again when nobody is
 * there who could say them.
 */
export interface ServiceRow {
  readonly id: string;
  readonly owner: string;
  readonly environment: { readonly name: string; readonly version: string };
  /** How many there should be. */
  readonly replicas: number;
  readonly variables: Readonly<Record<string, string>>;
  /** Counts the changes that need new replicas. */
  readonly generation: number;
  readonly slots: readonly Slot[];
  /** The name of the folder that outlives its replicas; null if it has none. */
  readonly storage: string | null;
  /** The widest limit on instances of the tokens that it was made with and that have raised the number of replicas. */
  readonly maxInstances: number | null;
  /** Why a replica failed last. */
  readonly reason: string | null;
  /** It is being taken away, with its storage or without; null while it is meant to be. */
  readonly leaving: { readonly deletesStorage: boolean } | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}

export function serviceRows(store: Store): Collection<ServiceRow> {
  return new Collection(store, "service", ({ owner, environment: { name } }) => ({ all: "yes", owner, environment: name }));
}

/** What a service is said to be, by how many of its replicas run. */
export function statusOf({ replicas, generation, slots }: ServiceRow, available: number): "Creating" | "Updating" | "Running" {
  if (available === 0) return "Creating";
  return available < replicas || slots.some((slot) => slot.generation !== generation) ? "Updating" : "Running";
}

/** How many of the replicas can be called, of those that there should be. */
export function availableOf({ replicas, slots }: ServiceRow, seen: ReadonlyMap<string, InstanceRow>): number {
  return Math.min(replicas, slots.filter(({ instanceId }) => seen.get(instanceId)?.status === "Running").length);
}
