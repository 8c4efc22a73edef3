import { readdirSync, rmdirSync } from "node:fs";
import { isRunning, type ProcessTable } from "../host/process-table.ts";
import type { Records } from "../host/records.ts";
import type { LayerStore } from "../images/layers.ts";
import type { Networks } from "../network/networks.ts";
import { ControlGroup } from "./cgroups/group.ts";
import { foldersOf, type Hierarchy } from "./cgroups/hierarchy.ts";
import { type ContainerRecord, ID_LENGTH, mappedFolder } from "./container.ts";
import { removeShared } from "./runtime/runsc.ts";

/** Where resources of containers are. */
export interface ContainerResources {
  readonly homeKey: string;
  readonly records: Records<ContainerRecord>;
  readonly layers: LayerStore;
  readonly networks: Networks;
  readonly hierarchy: Hierarchy;
  readonly processes: ProcessTable;
  readonly remove: (record: ContainerRecord) => Promise<void>;
}

/** Removes containers and other resources of ended processes that are not in `used`. */
export async function removeLeftovers(resources: ContainerResources, used: ReadonlySet<string>): Promise<void> {
  const { homeKey, records, layers, processes, remove } = resources;
  await records.removeParts(processes);
  const kept = new Set<string>();
  const removals: Promise<void>[] = [];
  for (const id of records.ids()) {
    const record = records.find(id);
    if (record !== null && (used.has(id) || isRunning(processes, record.maker))) {
      kept.add(id);
    } else removals.push(record === null ? records.remove(id) : remove(record));
  }
  for (const holder of await layers.holders())
    if (holder.startsWith(homeKey) && holder.length === ID_LENGTH && !kept.has(holder)) await layers.release(holder);
  // What cannot be removed now is tried again later.
  await Promise.allSettled(removals);
  await removeGroups(resources);
  await removeNetworks(resources);
}

/** Removes control groups of containers that are gone: a runtime that was killed may have created one when its container was removed already. */
async function removeGroups({ homeKey, records, hierarchy }: ContainerResources): Promise<void> {
  const parent = `/aenv-${homeKey}`;
  const names = new Set(foldersOf(hierarchy, parent).flatMap(namesIn));
  for (const id of names) {
    if (!id.startsWith(homeKey) || id.length !== ID_LENGTH || records.find(id) !== null) continue;
    const group = new ControlGroup(hierarchy, `${parent}/${id}`);
    await group.kill();
    await group.remove();
  }
}

/** Removes networks that no container has: their process ended after it took them, and before it wrote down for which container. */
async function removeNetworks({ records, networks }: ContainerResources): Promise<void> {
  const abandoned = await networks.listAbandoned();
  const used = new Set(records.ids().map((id) => records.find(id)?.network));
  for (const name of abandoned) if (!used.has(name)) await networks.remove(name);
}

/** What the containers of a home share, and what is above their groups and mounted roots once it is empty. */
export async function removeSharedFolders(hierarchy: Hierarchy, homeKey: string): Promise<void> {
  await removeShared(mappedFolder(homeKey)).catch(() => undefined);
  for (const folder of [...foldersOf(hierarchy, `/aenv-${homeKey}`), mappedFolder(homeKey)]) {
    try {
      rmdirSync(folder);
    } catch {}
  }
}

/** Empty if there is no such folder. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
