import type { SandboxEngine } from "@aenv/sandbox";
import type { Quotas } from "../access/quotas.ts";
import type { Hub } from "../hub/hub.ts";
import { type PeerRow, Peers } from "../peers/peers.ts";
import { ownIdentity } from "../peers/process-identity.ts";
import type { SandboxClients } from "../sandboxes/client.ts";
import type { ShownText } from "../shown-text.ts";
import type { FairQueue } from "../slots/fair-queue.ts";
import { Hosts } from "../slots/hosts.ts";
import type { Pool } from "../slots/pool.ts";
import { Slots } from "../slots/slots.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";
import { Idempotency, idempotencyIndexes } from "./idempotency.ts";
import type { InstanceTableOptions } from "./instance-table.ts";
import { Instances } from "./instances.ts";
import { InstanceList } from "./list.ts";
import { InstanceLogs } from "./logs.ts";
import { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
import type { NewRowOptions } from "./new-row.ts";
import { Recovery } from "./recovery.ts";
import { instanceRows } from "./row.ts";
import { Targets } from "./targets.ts";

export interface OpenInstancesOptions extends NewRowOptions, Pick<MaintenanceOptions, "roundMs" | "onTakeOver" | "onFailure"> {
  readonly store: Store;
  readonly engine: SandboxEngine;
  readonly clients: SandboxClients;
  readonly pool: Pool;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly queue: FairQueue;
  /** The machine and folder in which the sandboxes live. */
  readonly location: string;
  /** Nobody else uses the store. */
  readonly isAlone: boolean;
  readonly maxHosts: number;
  readonly maxEmptyHosts: number;
  readonly startTimeoutMs: number;
  readonly leaseMs: number;
  readonly now: () => Date;
  readonly onChange: InstanceTableOptions["onChange"];
  readonly shown?: ShownText;
}

/** How long another server's change of an instance may go unnoticed at our gateway. */
const MAX_ROW_AGE_MS = 1_000;
/** A second host is opened when the first has this many slots taken. */
const SPREAD_AT = 64;

/** The room of the running environments, with everybody in it who makes, finds and keeps them. */
export function openInstances(options: OpenInstancesOptions) {
  const { store, engine, clients, pool, hub, serverId, location, isAlone, startTimeoutMs, leaseMs, now, onFailure } = options;
  const rows = instanceRows(store);
  const targets = new Targets(rows, isAlone ? Number.POSITIVE_INFINITY : MAX_ROW_AGE_MS);
  const idempotency = new Idempotency(new Collection(store, "idempotency", idempotencyIndexes), now);
  const hosts = new Hosts({
    pool,
    maxHosts: options.maxHosts,
    spreadAt: SPREAD_AT,
    maxEmpty: options.maxEmptyHosts,
    isTaken: async (sandboxId) => (await rows.count("sandbox", sandboxId)) > 0,
    now: () => now().getTime(),
  });
  const slots = new Slots({
    pool,
    hosts,
    clients,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    startTimeoutMs,
    findSandbox: async (sandboxId) => (await engine.list()).find(({ id }) => id === sandboxId) ?? null,
    onExit: (sandboxId, ids, exit) => void instances.onSandboxExit(sandboxId, ids, exit.reason).catch(onFailure),
  });
  const instances = new Instances({
    ...options,
    rows,
    idempotency,
    slots,
    onChange: (row, before) => {
      targets.note(row);
      options.onChange(row, before);
    },
  });
  const peers = new Peers({
    id: serverId,
    location,
    process: ownIdentity(),
    rows: new Collection<PeerRow>(store, "server", () => ({})),
    now,
    isAlone,
    leaseMs,
  });
  const recovery = new Recovery({
    engine,
    rows,
    instances,
    slots,
    peers,
    clients,
    startTimeoutMs,
    now: () => now().getTime(),
  });
  const maintenance = new Maintenance({ ...options, peers, recovery, instances, slots, hosts });
  const list = new InstanceList(rows);
  const logs = new InstanceLogs(slots);
  return { rows, instances, hosts, slots, targets, idempotency, peers, recovery, maintenance, list, logs };
}
