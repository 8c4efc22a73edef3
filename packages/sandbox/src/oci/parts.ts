import type { KeyObject } from "node:crypto";
import { join } from "node:path";
import type { Architecture } from "../engine/architecture.ts";
import type { SandboxRuntime } from "../engine/engine.ts";
import type { ProcessIdentity, ProcessTable } from "../host/process-table.ts";
import { LayerStore } from "../images/layers.ts";
import { initProgram } from "../init/program.ts";
import { namespaceCables } from "../network/namespaces.ts";
import { Networks, type NetworksOptions } from "../network/networks.ts";
import { findHierarchy } from "./cgroups/group.ts";
import type { Container, PreparedContainer } from "./container.ts";
import { Containers } from "./containers.ts";
import { Images, storeFolders } from "./images.ts";
import type { OciSettings } from "./options.ts";
import { ContainerPool } from "./pool.ts";
import type { OciRuntime } from "./runtime/runtime.ts";
import { SnapshotStore } from "./snapshots/store.ts";

/** What takes time to open of an engine: it is opened with the first call. */
export interface Parts {
  readonly containers: Containers;
  readonly pools: Pools;
  readonly networks: Networks;
  readonly layers: LayerStore;
  readonly images: Images;
  readonly snapshots: SnapshotStore;
  readonly initPath: string;
}

export interface Pools {
  /** The init runs. */
  readonly running: ContainerPool<Container>;
  /** Containers for snapshots of memory: nothing runs yet, so each serves all snapshots of the same files. */
  readonly prepared: ContainerPool<PreparedContainer>;
  /** Copies of snapshots with memory, frozen. */
  readonly restored: ContainerPool<Container>;
}

interface Surroundings {
  readonly settings: OciSettings;
  /** The folder of the engine. */
  readonly folder: string;
  readonly key: KeyObject;
  readonly processes: ProcessTable;
  readonly self: ProcessIdentity;
  readonly runtime: (name: SandboxRuntime) => Promise<OciRuntime>;
  readonly onRefused: NonNullable<NetworksOptions["onRefused"]>;
}

const POOL_IDLE_MS = 10 * 60_000;
/** Copies of snapshots have all of their memory, so few wait: see also `MAX_WAITING_BYTES`. */
const RESTORED_EACH = 2;
const RESTORED_TOTAL = 8;

export async function openParts(surroundings: Surroundings): Promise<Parts> {
  const { settings, folder, key, processes, self } = surroundings;
  const {
    home,
    storeFolder,
    images: registries,
    poolSize,
    poolTotal,
    hasMemory,
    networkPoolSize,
    subnet,
    resolve,
    snapshotSpaceMb,
  } = settings;
  const architecture = process.arch as Architecture;
  const { store, images: imageRecords } = storeFolders(folder, storeFolder);
  const layers = new LayerStore(store);
  const [hierarchy, initPath] = await Promise.all([findHierarchy(), initProgram(architecture)]);
  const networks = await Networks.open({
    home,
    folder: join(folder, "networks"),
    cables: namespaceCables,
    poolSize: networkPoolSize,
    onRefused: surroundings.onRefused,
    ...(subnet !== undefined && { subnet }),
    ...(resolve !== undefined && { resolve }),
  });
  const containers = new Containers({
    folder,
    key,
    initPath,
    layers,
    networks,
    hierarchy,
    architecture,
    processes,
    self,
    users: settings.users,
    capabilityLimit: settings.capabilityLimit,
    log: settings.log,
    runtime: surroundings.runtime,
  });
  const waiting = {
    size: poolSize,
    total: poolTotal,
    hasMemory,
    idleMs: POOL_IDLE_MS,
    now: Date.now,
    isRunning: ({ record }: PreparedContainer) => containers.isRunning(record),
  };
  const pools: Pools = {
    running: new ContainerPool({
      ...waiting,
      create: (spec, signal) => containers.create(spec, signal),
      remove: (container) => containers.discard(container),
    }),
    prepared: new ContainerPool({
      ...waiting,
      create: (spec, signal) => containers.prepare(spec, signal),
      remove: ({ record }) => containers.remove(record),
    }),
    restored: new ContainerPool({
      ...waiting,
      size: Math.min(poolSize, RESTORED_EACH),
      total: RESTORED_TOTAL,
      isFrozen: true,
      create: (spec, signal) => containers.createFrozen(spec, signal),
      remove: (container) => containers.discard(container),
    }),
  };
  const images = new Images({
    folder: imageRecords,
    layers,
    architecture,
    ...(settings.log !== undefined && { log: settings.log }),
    ...registries,
  });
  const snapshots = new SnapshotStore({
    folder: join(folder, "snapshots"),
    layers,
    maxBytes: snapshotSpaceMb * 2 ** 20,
    freeDiskBytes: registries.unpackLimits?.freeDiskBytes ?? null,
    self,
    processes,
  });
  await snapshots.collect();
  return { containers, pools, networks, layers, images, snapshots, initPath };
}
