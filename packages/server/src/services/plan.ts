import { type InstanceRow, isLive } from "../instances/row.ts";
import type { ServiceRow, Slot } from "./row.ts";

/** Who ran this long and then failed has not failed to start. */
const STEADY_MS = 60_000;
const LONGEST_PAUSE_MS = 60_000;

/**
 * The places that a service should have now, given what stands in those it has. What has ended is started again, after a while if
 * it keeps failing. After a change, the old ones go one by one as new ones run, so that there are never fewer than asked for and at
 * most one more; only with a storage, which is one replica's alone, the old one goes first.
 */
export function planSlots(row: ServiceRow, seen: ReadonlyMap<string, InstanceRow>, now: Date, newId: () => string): Slot[] {
  const isCurrent = (slot: Slot) => slot.generation === row.generation;
  const hasEnded = (slot: Slot) => {
    const instance = seen.get(slot.instanceId);
    return instance !== undefined && !isLive(instance);
  };
  const runs = (slot: Slot) => seen.get(slot.instanceId)?.status === "Running";
  const current = row.slots
    .filter(isCurrent)
    .map((slot) => (hasEnded(slot) ? anew(slot, seen.get(slot.instanceId) as InstanceRow, now, newId()) : slot))
    .sort((one, other) => Number(runs(other)) - Number(runs(one)));
  const running = Math.min(row.replicas, current.filter(runs).length);
  const spared = row.storage === null ? Math.max(0, row.replicas - running) : 0;
  const old = row.slots.filter((slot) => !isCurrent(slot) && runs(slot)).slice(0, spared);
  const wanted = Math.min(row.replicas, row.replicas + (old.length > 0 ? 1 : 0) - old.length);
  const kept = current.slice(0, Math.max(wanted, running));
  while (kept.length < wanted) kept.push(slotOf(newId(), row.generation, 0, now));
  return [...old, ...kept];
}

/** The same place after a start has failed, for another try. */
export function afterFailure(slot: Slot, now: Date): Slot {
  return slotOf(slot.instanceId, slot.generation, slot.failures + 1, now);
}

function anew({ generation, failures }: Slot, ended: InstanceRow, now: Date, id: string): Slot {
  const livedMs = Date.parse(ended.updatedAt) - Date.parse(ended.createdAt);
  // What someone has ended did not fail.
  return slotOf(id, generation, ended.status === "Failed" && livedMs < STEADY_MS ? failures + 1 : 0, now);
}

function slotOf(instanceId: string, generation: number, failures: number, now: Date): Slot {
  const pauseMs = failures === 0 ? 0 : Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** (failures - 1));
  return { instanceId, generation, failures, notBefore: new Date(now.getTime() + pauseMs).toISOString() };
}
