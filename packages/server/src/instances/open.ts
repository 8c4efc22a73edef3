import type { SandboxEngine } from "@aenv/sandbox";
import type { Quotas } from "../access/quotas.ts";
import type { Hub } from "../hub/hub.ts";
import { type ReplicaRow, Replicas } from "../peers/peers.ts";
import { ownIdentity } from "../peers/process-identity.ts";
import type { SandboxClients } from "../sandboxes/client.ts";
import type { ShownText } from "../shown-text.ts";
import type { FairQueue } from "../slots/fair-queue.ts";
import { Hosts } from "../slots/hosts.ts";
import type { Pool } from "../slots/pool.ts";
import { Placement } from "../slots/slots.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";
import { Idempotency, idempotencyIndexes } from "./idempotency.ts";
import { Instances } from "./instances.ts";
import type { LedgerOptions } from "./ledger.ts";
import { InstanceList } from "./list.ts";
import { InstanceLogs } from "./logs.ts";
import { Keeper, type KeeperOptions } from "./maintenance.ts";
import type { DrawingOptions } from "./new-row.ts";
import { Recovery } from "./recovery.ts";
import { instanceRows } from "./row.ts";
import { Targets } from "./targets.ts";

export interface OpenInstancesOptions extends DrawingOptions, Pick<KeeperOptions, "roundMs" | "onTakeOver" | "onFailure"> {
  readonly store: Store;
  readonly engine: SandboxEngine;
  readonly clients: SandboxClients;
  readonly pool: Pool;
  readonly hub: Hub;
  readonly quotas: Quotas;
  readonly queue: FairQueue;
  /** The machine and folder in which the sandboxes live. */
  readonly place: string;
  /** Nobody else uses the store. */
  readonly isAlone: boolean;
  readonly maxHosts: number;
  readonly maxEmptyHosts: number;
  readonly startTimeoutMs: number;
  readonly silentMs: number;
  readonly now: () => Date;
  readonly onChange: LedgerOptions["onChange"];
  readonly shown?: ShownText;
}

/** How long another replica's change of an instance may go unnoticed at our gateway. */
const BELIEVE_MS = 1_000;
/** A second host is opened when the first has this many slots taken. */
const SPREAD_AT = 64;

/** The room of the running environments, with everybody in it who makes, finds and keeps them. */
export function openInstances(options: OpenInstancesOptions) {
  const { store, engine, clients, pool, hub, replica, place, isAlone, startTimeoutMs, silentMs, now, onFailure } = options;
  const rows = instanceRows(store);
  const targets = new Targets(rows, isAlone ? Number.POSITIVE_INFINITY : BELIEVE_MS);
  const idempotency = new Idempotency(new Collection(store, "idempotency", idempotencyIndexes), now);
  const hosts = new Hosts({
    pool,
    maxHosts: options.maxHosts,
    spreadAt: SPREAD_AT,
    maxEmpty: options.maxEmptyHosts,
    isTaken: async (sandboxId) => (await rows.count("sandbox", sandboxId)) > 0,
    now: () => now().getTime(),
  });
  const placement = new Placement({
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
    placement,
    onChange: (row, before) => {
      targets.note(row);
      options.onChange(row, before);
    },
  });
  const replicas = new Replicas({
    id: replica,
    place,
    process: ownIdentity(),
    rows: new Collection<ReplicaRow>(store, "replica", () => ({})),
    now,
    isAlone,
    silentMs,
  });
  const recovery = new Recovery({
    engine,
    rows,
    instances,
    placement,
    replicas,
    clients,
    startTimeoutMs,
    now: () => now().getTime(),
  });
  const keeper = new Keeper({ ...options, replicas, recovery, instances, placement, hosts });
  const list = new InstanceList(rows);
  const logs = new InstanceLogs(placement);
  return { rows, instances, hosts, placement, targets, idempotency, replicas, recovery, keeper, list, logs };
}
