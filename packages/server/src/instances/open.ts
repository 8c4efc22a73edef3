import { openProcessTable } from "@aenv/sandbox";
import { ownIdentity } from "../peers/own-identity.ts";
import { type PeerRow, Peers } from "../peers/peers.ts";
import { Slots, type SlotsOptions } from "../slots/slots.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";
import { Idempotency, idempotencyIndexes } from "./idempotency.ts";
import { Instances, type InstancesOptions } from "./instances.ts";
import { InstanceList } from "./list.ts";
import { InstanceLogs } from "./logs.ts";
import { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
import { Recovery } from "./recovery.ts";
import { instanceRows } from "./row.ts";
import { Targets } from "./targets.ts";

export interface OpenInstancesOptions
  extends Omit<InstancesOptions, "rows" | "idempotency" | "slots" | "engine">,
    Pick<MaintenanceOptions, "roundMs" | "onTakeOver" | "onFailure">,
    Pick<SlotsOptions, "engine" | "clients" | "pool" | "runtimes" | "maxHosts" | "startTimeoutMs"> {
  readonly store: Store;
  /** The machine and folder of the sandboxes. */
  readonly location: string;
  /** No other server uses the store. */
  readonly isAlone: boolean;
  readonly maxEmptyHosts: number;
  readonly leaseMs: number;
}

/** How long the gateway may use a row from memory while other servers can change it. */
const MAX_ROW_AGE_MS = 1_000;
/** The next host is started when every host has this many occupants. */
const SPREAD_AT = 64;

/** Puts together what creates, finds and manages instances. */
export function openInstances(options: OpenInstancesOptions) {
  const { store, hub, serverId, location, isAlone, startTimeoutMs, leaseMs, onFailure } = options;
  const now = () => options.now().getTime();
  const rows = instanceRows(store);
  const targets = new Targets(rows, isAlone ? Number.POSITIVE_INFINITY : MAX_ROW_AGE_MS);
  const idempotency = new Idempotency(new Collection(store, "idempotency", idempotencyIndexes), options.now);
  const slots = new Slots({
    engine: options.engine,
    clients: options.clients,
    pool: options.pool,
    runtimes: options.runtimes,
    maxHosts: options.maxHosts,
    spreadAt: SPREAD_AT,
    maxEmpty: options.maxEmptyHosts,
    isOccupied: async (sandboxId) => (await rows.count("sandbox", sandboxId)) > 0,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    startTimeoutMs,
    onExit: (sandboxId, ids, exit) => void instances.onSandboxExit(sandboxId, ids, exit.reason).catch(onFailure),
    now,
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
  const processes = openProcessTable();
  const peers = new Peers({
    id: serverId,
    location,
    process: ownIdentity(processes),
    processes,
    rows: new Collection<PeerRow>(store, "server", () => ({})),
    now: options.now,
    isAlone,
    leaseMs,
  });
  const recovery = new Recovery({ instances, slots, peers, startTimeoutMs, now });
  const maintenance = new Maintenance({ ...options, peers, recovery, instances, slots });
  return {
    rows,
    instances,
    slots,
    targets,
    idempotency,
    peers,
    recovery,
    maintenance,
    list: new InstanceList(rows),
    logs: new InstanceLogs(slots),
  };
}
