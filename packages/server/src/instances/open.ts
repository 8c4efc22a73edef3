import type { ModelCallAnswer } from "@aenv/contract";
import { openProcessTable } from "@aenv/sandbox";
import { GRACE_MS, type Lifecycle } from "../lifecycle/lifecycle.ts";
import type { Handlers, LinkTools } from "../link/link-request.ts";
import { Links } from "../link/links.ts";
import { LinkRequests } from "../link/requests.ts";
import type { CallModel } from "../models/endpoint.ts";
import { HeldModels } from "../models/held-models.ts";
import { InstanceModelEndpoints } from "../models/instance-models.ts";
import { ModelRequests } from "../models/requests.ts";
import { ownIdentity } from "../peers/own-identity.ts";
import { type PeerRow, Peers } from "../peers/peers.ts";
import { InitConnections } from "../sandboxes/init-connections.ts";
import { Slots, type SlotsOptions } from "../slots/slots.ts";
import { openSnapshots } from "../snapshots/open.ts";
import { Collection } from "../stores/collection.ts";
import type { Store } from "../stores/store.ts";
import type { TaskPath } from "../task-sandboxes/in-sandbox.ts";
import { SharedFolders } from "../task-sandboxes/shared-folders.ts";
import { TaskResources } from "../task-sandboxes/task-resources.ts";
import { Idempotency, idempotencyIndexes } from "./idempotency.ts";
import { Instances, type InstancesOptions } from "./instances.ts";
import { InstanceList } from "./list.ts";
import { InstanceLogs } from "./logs.ts";
import { Maintenance, type MaintenanceOptions } from "./maintenance.ts";
import { Recovery } from "./recovery.ts";
import { instanceRows, isLive, isSettled } from "./row.ts";
import { RunningCommands } from "./running-commands.ts";
import { Targets } from "./targets.ts";

export interface OpenInstancesOptions
  extends Omit<InstancesOptions, "rows" | "idempotency" | "slots" | "tasks" | "engine" | "snapshots" | "heldModels">,
    Pick<MaintenanceOptions, "roundMs" | "onTakeOver" | "onFailure">,
    Pick<SlotsOptions, "engine" | "space" | "clients" | "pool" | "runtimes" | "maxHosts" | "startTimeoutMs"> {
  /** What answers the requests of instances that are about neither sandboxes nor models. */
  readonly handlers: (tools: LinkTools) => Omit<Handlers, TaskPath | "/model">;
  readonly store: Store;
  readonly lifecycle: Lifecycle;
  /** The machine and folder of the sandboxes. */
  readonly location: string;
  readonly machine: string;
  /** No other server uses the store. */
  readonly isAlone: boolean;
  readonly maxEmptyHosts: number;
  readonly leaseMs: number;
  readonly home: string;
  readonly commandTimeoutMs: number;
  readonly commandsAtOnce: number;
  /** The folder of the hub's archives. */
  readonly blobs: string;
  readonly callModel: CallModel;
  readonly onModelCalled: (owner: string, answer: ModelCallAnswer | null) => void;
}

/** How long the gateway may use a row from memory while other servers can change it. */
const MAX_ROW_AGE_MS = 1_000;
export function maxRowAgeMs(isAlone: boolean): number {
  return isAlone ? Number.POSITIVE_INFINITY : MAX_ROW_AGE_MS;
}

/** The next host is started when there are this many occupants for each host. */
const SPREAD_AT = 64;

/** Puts together what creates, finds and manages instances. */
export function openInstances(options: OpenInstancesOptions) {
  const { store, hub, lifecycle, serverId, location, machine, isAlone, startTimeoutMs, leaseMs, onFailure } = options;
  const now = () => options.now().getTime();
  const rows = instanceRows(store);
  const targets = new Targets(rows, maxRowAgeMs(isAlone));
  const idempotency = new Idempotency(new Collection(store, "idempotency", idempotencyIndexes), options.now);
  const connections = new InitConnections(options.engine);
  const tasks = new TaskResources({
    engine: options.engine,
    space: options.space,
    serverId,
    connections,
    limits: options.taskLimits,
    hasMemory: () => options.memoryGate?.hasMemory ?? true,
    untilMemory: async (id, signal) => {
      await options.memoryGate?.pass((why) => {
        slots.noteWait(id, why);
        instances.noteStart(id, why);
      }, signal);
      slots.noteWait(id, null);
    },
    startTimeoutMs,
    commandTimeoutMs: options.commandTimeoutMs,
    commandsAtOnce: options.commandsAtOnce,
    sharedFolders: new SharedFolders(options.home, options.engine),
    start: (owner, work, signal) => options.scheduler.run({ kind: "task sandboxes", owner }, work, signal),
    findInstance: async (id) => {
      const row = (await rows.find(id))?.value;
      if (row === undefined) return null;
      const { owner, labels, ttl, environment } = row;
      const subject = { environment: environment.name, version: environment.version, owner, instance: id, ttl, labels };
      const isStarting = !isSettled(row);
      return { id, owner, isLive: isLive(row), isStarting, hostId: row.slot?.sandboxId ?? null, policy: row.taskSandboxes, subject };
    },
    isOccupant: (hostId, id) => slots.isOccupant(hostId, id),
    secondOf: (hostId) => slots.secondOf(hostId),
  });
  const heldModels = new HeldModels();
  const models = new ModelRequests({
    endpoints: new InstanceModelEndpoints({
      policy: options.modelPolicy,
      held: heldModels,
      secret: (owner, name) => options.secrets.read(owner, name),
    }),
    call: options.callModel,
    findInstance: async (hostId, id) => {
      const row = slots.isOccupant(hostId, id) ? (await rows.find(id))?.value : undefined;
      return row !== undefined && isLive(row) ? row : null;
    },
    begin: (row) => instances.uses.begin(row),
    end: (row) => instances.uses.end(row),
    onCalled: options.onModelCalled,
  });
  const requests = new LinkRequests({
    handlers: (tools) => ({ ...options.handlers(tools), ...tasks.requests.handlers(tools), ...models.handlers(tools) }),
    idleMs: options.commandTimeoutMs,
    onFailure,
  });
  const links = new Links({ answer: (...request) => requests.answer(...request), onFailure });
  const slots = new Slots({
    tasks,
    links,
    engine: options.engine,
    space: options.space,
    clients: options.clients,
    pool: options.pool,
    runtimes: options.runtimes,
    maxHosts: options.maxHosts,
    spreadAt: SPREAD_AT,
    maxEmpty: options.maxEmptyHosts,
    isOccupied: async (sandboxId) => (await rows.count("sandbox", sandboxId)) > 0,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    startTimeoutMs,
    onFailure,
    onExit: (sandboxId, ids, exit) => void instances.sandboxEvents.exited(sandboxId, ids, exit.reason).catch(onFailure),
    now,
  });
  const snapshots = openSnapshots({ ...options, slots, livingServers: () => peers.livingIds() });
  const instances = new Instances({
    ...options,
    rows,
    idempotency,
    slots,
    snapshots,
    tasks: tasks.sandboxes,
    heldModels,
    runningCommands: new RunningCommands({
      slots,
      tasks: tasks.sandboxes,
      connections,
      ownCommands: (sandboxId) => tasks.ownCommands(sandboxId),
    }),
    onChange: (row, before) => {
      targets.note(row);
      heldModels.note(row, isLive(row));
      options.onChange(row, before);
    },
    onRead: (row) => targets.noteRead(row),
  });
  const processes = openProcessTable();
  const peers = new Peers({
    id: serverId,
    location,
    machine,
    process: ownIdentity(processes),
    processes,
    rows: new Collection<PeerRow>(store, "server", () => ({})),
    now: options.now,
    isAlone,
    leaseMs,
  });
  const recovery = new Recovery({ instances, slots, peers, tasks, startTimeoutMs, now });
  const maintenance = new Maintenance({ ...options, peers, recovery, instances, slots });
  for (const one of [instances, idempotency, snapshots]) lifecycle.addSweep(() => one.sweep());
  lifecycle.on("refuse", () => instances.refuseNew());
  lifecycle.on("close", () => snapshots.close());
  lifecycle.on("close", () => (lifecycle.wasStarted ? maintenance.close(GRACE_MS) : maintenance.abandon()));
  lifecycle.on("close", () => connections.close());
  return {
    rows,
    instances,
    slots,
    snapshots,
    targets,
    idempotency,
    peers,
    recovery,
    maintenance,
    tasks,
    links,
    connections,
    list: new InstanceList(rows),
    logs: new InstanceLogs(slots),
  };
}
