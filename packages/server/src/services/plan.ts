import { type InstanceRow, isLive } from "../instances/row.ts";
import type { ReplicaSlot, ServiceRow } from "./row.ts";

/** A replica that ran this long before it failed does not count as a failed start. */
const STEADY_MS = 60_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * The slots that a service should have now, given the instances in its current ones. An ended replica is replaced, with growing delays
 * if it keeps failing. After a change, old replicas are replaced one by one as new ones run, so that there are never fewer than
 * requested and at most one more. A service with storage has one replica, whose old instance ends first.
 */
export function planSlots(row: ServiceRow, seen: ReadonlyMap<string, InstanceRow>, now: Date, newId: () => string): ReplicaSlot[] {
  const isCurrent = (slot: ReplicaSlot) => slot.generation === row.generation;
  const hasEnded = (slot: ReplicaSlot) => {
    const instance = seen.get(slot.instanceId);
    return instance !== undefined && !isLive(instance);
  };
  const runs = (slot: ReplicaSlot) => seen.get(slot.instanceId)?.status === "Running";
  const current = row.slots
    .filter(isCurrent)
    .map((slot) => (hasEnded(slot) ? replacement(slot, seen.get(slot.instanceId) as InstanceRow, now, newId()) : slot))
    .sort((one, other) => Number(runs(other)) - Number(runs(one)));
  const running = Math.min(row.replicas, current.filter(runs).length);
  const oldLimit = row.storage === null ? Math.max(0, row.replicas - running) : 0;
  const old = row.slots.filter((slot) => !isCurrent(slot) && runs(slot)).slice(0, oldLimit);
  const wanted = Math.min(row.replicas, row.replicas + (old.length > 0 ? 1 : 0) - old.length);
  const kept = current.slice(0, Math.max(wanted, running));
  while (kept.length < wanted) kept.push(slotOf(newId(), row.generation, 0, now));
  return [...old, ...kept];
}

/** The slot after a failed start, with the delay before the next attempt. */
export function afterFailure(slot: ReplicaSlot, now: Date): ReplicaSlot {
  return slotOf(slot.instanceId, slot.generation, slot.failures + 1, now);
}

function replacement({ generation, failures }: ReplicaSlot, ended: InstanceRow, now: Date, id: string): ReplicaSlot {
  const livedMs = Date.parse(ended.updatedAt) - Date.parse(ended.createdAt);
  // A deleted instance did not fail.
  return slotOf(id, generation, ended.status === "Failed" && livedMs < STEADY_MS ? failures + 1 : 0, now);
}

function slotOf(instanceId: string, generation: number, failures: number, now: Date): ReplicaSlot {
  const pauseMs = failures === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** (failures - 1));
  return { instanceId, generation, failures, notBefore: new Date(now.getTime() + pauseMs).toISOString() };
}
