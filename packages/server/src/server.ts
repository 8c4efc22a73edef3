import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { freemem, hostname, tmpdir } from "node:os";
import { dirname } from "node:path";
import { setTimeout } from "node:timers/promises";
import { hostRuleFor, isLoopback, parseDuration } from "@aenv/contract";
import { KubernetesEngine, type SandboxEngine } from "@aenv/sandbox";
import { Access, exposureWarning } from "./access/access.ts";
import { useAdminToken } from "./access/admin-token.ts";
import { Delegates } from "./access/delegates.ts";
import { createFirstToken } from "./access/first-token.ts";
import { Quotas } from "./access/quotas.ts";
import { Tokens, tokenRows } from "./access/tokens.ts";
import { openApps } from "./api/open.ts";
import { Background } from "./background.ts";
import { openCommands } from "./commands/open.ts";
import type { ServerConfig } from "./config/config.ts";
import { hideFolders } from "./config/shown-text.ts";
import { openEngine } from "./engine.ts";
import { openGateway } from "./gateway/open.ts";
import { PortClients } from "./gateway/ports/clients.ts";
import { LinkHosts } from "./gateway/ports/link-hosts.ts";
import { PortLinks } from "./gateway/ports/links.ts";
import { Presign } from "./gateway/ports/presign.ts";
import { dataUrlOf } from "./http/data-url.ts";
import type { HttpLimits } from "./http/limits.ts";
import { finish, listen, loopbackUrl, portOf, urlOf } from "./http/listen.ts";
import { retireConnections } from "./http/retire.ts";
import type { BuiltIns } from "./hub/built-ins.ts";
import { openHub } from "./hub/open.ts";
import { findTaskSandbox } from "./instances/containers.ts";
import { maxRowAgeMs, openInstances } from "./instances/open.ts";
import { RewardPhases } from "./instances/reward-phases.ts";
import { type InstanceRow, instanceRows, isLive } from "./instances/row.ts";
import { instanceSettings } from "./instances/settings.ts";
import { Closers } from "./lifecycle/closers.ts";
import { startRounds } from "./lifecycle/rounds.ts";
import { assertSafe, locationOf } from "./location.ts";
import { Audit, REPEAT_MS } from "./operations/audit.ts";
import { DiskProbe } from "./operations/disk.ts";
import { createLogger } from "./operations/logger.ts";
import { Metrics } from "./operations/metrics.ts";
import { noTracing, openTracing } from "./operations/tracing.ts";
import { lockHome } from "./peers/home-lock.ts";
import { SandboxClients } from "./sandboxes/client.ts";
import { SnapshotSpace } from "./sandboxes/snapshot-space.ts";
import { inUse } from "./services/in-use.ts";
import { openServices } from "./services/open.ts";
import { serviceRows } from "./services/row.ts";
import { ServiceTargets } from "./services/targets.ts";
import { MemoryGate } from "./slots/memory-gate.ts";
import { openPool } from "./slots/open.ts";
import { openStore, sqliteFileOf } from "./stores/open.ts";
import type { OpenTrainerServices } from "./trainer-services.ts";
import { openDataPort, workerCount } from "./workers/open.ts";
import { readClient } from "./workers/server-routes.ts";
import type { Workers } from "./workers/workers.ts";

export interface ServerParts {
  readonly config: ServerConfig;
  /** The blank runner's command line; the server uses environments only through their HTTP APIs. */
  readonly runner: readonly string[];
  /** The runner as one file of JavaScript; needed by engines whose sandboxes do not see the files of this machine. */
  readonly runnerCode?: () => Promise<string>;
  /** The command line of a worker; without it, the data port is served by this process. */
  readonly worker?: readonly string[];
  readonly version: string;
  /** Environment variables of this process: programs that pull images get those for proxies and certificates. */
  readonly machineVariables?: Readonly<Record<string, string | undefined>>;
  /** Environments that are published at their first use. */
  readonly builtIns?: BuiltIns;
  /** Opens sessions, rollouts and OpenEnv, which use the server through its own ports. */
  readonly openTrainerServices: OpenTrainerServices;
  /** Instead of the one of the configuration. It runs the command `runner`. */
  readonly engine?: SandboxEngine;
}

export interface RunningServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  /** On loopback only; null if not configured. */
  readonly adminUrl: string | null;
  readonly access: Access;
  /** The pids of the processes that serve the data port; empty if this one does. */
  readonly workerPids: () => readonly number[];
  /** Tokens by which this process acts for a caller. */
  readonly delegates: Delegates;
  /** Creates an administrator's token if tokens are required and there is none yet; else null. */
  firstToken(): Promise<string | null>;
  /** Refuses new requests, lets calls in flight finish, and ends the instances or leaves them to other servers. */
  close(): Promise<void>;
}

const GRACE_MS = 10_000;

/** Opens every component. If one fails to open, those that are open are closed again. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const closers = new Closers();
  try {
    return await open(parts, closers);
  } catch (error) {
    await closers.close().catch(() => {});
    throw error;
  }
}

/** Wires the components together. The only place that knows concrete classes. */
async function open(parts: ServerParts, closers: Closers): Promise<RunningServer> {
  const { config } = parts;
  assertSafe(config);
  await mkdir(config.home, { recursive: true, mode: 0o700 });
  const isBehindWorkers = workerCount(config, parts.worker) > 1;
  /** Null as long as the data port is not open, and if this process serves it. */
  let workers = (): Workers | null => null;
  const isAlone = !/^rediss?[:+]/.test(config.store);
  if (isAlone) closers.add(lockHome(config.home));
  const now = () => new Date();
  const logger = createLogger(config.logLevel);
  const logFailure = (message: string) => (error: unknown) => logger.error({ err: error }, message);
  const storeFile = sqliteFileOf(config.store);
  const shown = hideFolders({
    "<home>": config.home,
    "<data>": config.dataDir,
    "<store>": storeFile === null ? "" : dirname(storeFile),
    "<tmp>": tmpdir(),
    "<server>": parts.runner[1] === undefined ? "" : dirname(parts.runner[1]),
  });
  const disk = new DiskProbe([config.home, ...(storeFile === null ? [] : [dirname(storeFile)])]);
  const audit = new Audit({ write: (event) => logger.info(event, "audit") });
  const tracing = config.otlpUrl === null ? noTracing : await openTracing(config.otlpUrl, parts.version);
  closers.add(() => tracing.close());
  const store = await openStore(config.store);
  closers.add(() => store.close());
  const serverId = `r-${randomBytes(8).toString("hex")}`;
  const { engine, runner } =
    parts.engine === undefined
      ? openEngine({
          ...parts,
          log: (line) => logger.info(line),
          warn: (line) => logger.warn(line),
          onRefused: (refused) => {
            logger.warn(refused, "the egress policy of a sandbox refused an outgoing connection");
            instances.sandboxEvents.refused(refused).catch(logFailure("a refused connection could not be noted"));
          },
          onLimit: (reached) => {
            logger.warn(reached, "a sandbox has reached a limit");
            instances.sandboxEvents.reachedLimit(reached).catch(logFailure("a limit that was reached could not be noted"));
          },
          onReady: (durationMs) => metrics.podReady(durationMs),
        })
      : { engine: parts.engine, runner: parts.runner };
  closers.add(() => engine.close());
  const clients = new SandboxClients((sandboxId) => workers()?.sandboxEnded(sandboxId));
  closers.add(() => clients.close());
  const settings = instanceSettings(config);
  const { roundMs, egressLimit } = settings;

  const rows = instanceRows(store);
  const serviceTable = serviceRows(store);
  const tokens = new Tokens(tokenRows(store), now, { onRevoked: async () => workers()?.tokenRevoked() });
  const delegates = new Delegates((token) => workers()?.delegateEnded(token));
  const access = new Access(tokens, config.access === "on" || (config.access === "auto" && !isLoopback(config.host)), delegates);
  if (access.isOn && config.adminToken !== null) await useAdminToken(tokens, config.adminToken);
  const quotas = new Quotas({
    instances: config.maxInstances,
    createsPerSecond: config.createsPerSecond,
    blobBytes: config.blobBytes,
    snapshots: config.maxSnapshots,
    snapshotBytes: config.snapshotBytes,
  });
  const memoryGate = new MemoryGate({ minBytes: config.minAvailableMemoryMb * 1024 ** 2, availableBytes: freemem, pollMs: 250 });
  const space = new SnapshotSpace();
  const { scheduler, pool, runtimes, verifier } = openPool({
    config,
    engine,
    space,
    clients,
    runner,
    serverId,
    versionStatus: (name, version) => hub.recencyOf(name, version),
    onFillFailure: (environment, error) =>
      logger.warn({ err: error, environment }, "starting a ready process failed; it is retried with growing delays"),
  });
  const hub = openHub({
    home: config.home,
    store,
    quotas,
    now,
    inspect: async (folder, options) => {
      const seen = await verifier.verify(folder, options);
      return seen.tasksProblem ? { ...seen, tasksProblem: shown(seen.tasksProblem) } : seen;
    },
    maxWarm: Math.min(config.poolMax, config.poolPerOwner, config.poolTotal),
    isInUse: inUse(rows, serviceTable),
    ...(parts.builtIns !== undefined && { builtIns: parts.builtIns }),
  });
  const {
    instances,
    slots,
    snapshots,
    targets,
    idempotency,
    maintenance,
    list,
    logs,
    peers,
    tasks: taskRoom,
    connections,
  } = openInstances({
    store,
    engine,
    space,
    clients,
    pool,
    runtimes,
    hub,
    quotas,
    scheduler,
    isAdministrator: async (owner) => !access.isOn || tokens.isAdministrator(owner),
    serverId,
    location: await locationOf(config),
    machine: hostname(),
    isAlone,
    ...settings,
    memoryGate,
    now,
    shown,
    onEnded: (id) => workers()?.ended(id),
    onChange: (row, before) => {
      workers()?.note(row);
      if (row.status === before?.status) return;
      if (row.service !== undefined) reconciler.nudge(row.service);
      if (before?.status === "Creating") metrics.started(row.status === "Running" ? "running" : "failed", ageOf(row));
      if (!isLive(row)) metrics.ended(row.status);
      logger.debug({ instanceId: row.id, status: row.status, reason: row.reason }, "instance");
    },
    onTakeOver: (recovered) => logger.warn(recovered, "another server is dead; its instances were taken over"),
    onFailure: logFailure("maintenance of the instances failed; it is retried"),
  });
  const { services, reconciler } = openServices({
    home: config.home,
    rows: serviceTable,
    instanceRows: rows,
    instances,
    engine,
    hub,
    quotas,
    egressLimit,
    runtimes,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    now,
    shown,
    onFailure: logFailure("reconciling the services failed; it is retried"),
  });
  const metrics = new Metrics({
    liveInstances: () => rows.count("live", "yes"),
    pool: () => pool.sizes(),
    poolCopies: () => pool.copies,
    hosts: () => slots.hostCount,
    waiting: () => scheduler.depth("creations"),
    waitingForMemory: () => memoryGate.waiting,
    frozen: () => rows.count("frozen", "yes"),
    frozenTotals: () => instances.frozenTotals,
    poolTroubled: () => pool.failingSets,
    rollouts: () => ({ running: trainer.rollouts.running, waiting: scheduler.depth("rollouts") }),
    verifications: () => ({ running: verifier.running, waiting: verifier.waiting }),
    workers: () => workers()?.metrics() ?? null,
    cluster: engine instanceof KubernetesEngine ? engine : null,
    workerProcesses: () => ({ running: workers()?.pids.length ?? 1, replaced: workers()?.replaced ?? 0 }),
  });
  let isReady = false;
  let wasReady = false;
  closers.add(() => snapshots.close());
  closers.add(() => (wasReady ? maintenance.close(GRACE_MS) : maintenance.abandon()));
  closers.add(() => verifier.close());
  const hostRule = hostRuleFor(config.host, config.allowedHosts);
  const httpLimits: HttpLimits = {
    headersMs: parseDuration(config.headersTimeout),
    requestMs: parseDuration(config.requestTimeout),
    connections: config.maxConnections,
  };
  const { commands, terminals, listeners, files, ...opened } = openCommands({
    config,
    instances,
    slots,
    engine,
    connections,
    tasks: taskRoom.sandboxes,
  });
  closers.add(() => connections.close());
  closers.add(() => opened.close());
  const links = new PortLinks(store, now);
  const linkHosts = new LinkHosts(config);
  const ports = new PortClients((sandboxId) => slots.find(sandboxId));
  closers.add(() => ports.close());
  const rewardPhases = new RewardPhases({
    find: (sandboxId) => slots.find(sandboxId),
    onFailure: logFailure("the policy for outgoing connections could not be set back after a reward"),
  });
  const calls = { onUse: (row: InstanceRow) => instances.uses.begin(row), onUsed: (row: InstanceRow) => instances.uses.end(row) };
  const gateway = openGateway({
    config,
    targets,
    services: new ServiceTargets(serviceTable, targets),
    links,
    linkHosts,
    clients,
    ports,
    access,
    hostRule,
    rewardPhases,
    findTask: (row, container) => findTaskSandbox(taskRoom.sandboxes, row, container),
    httpLimits,
    openenv: {
      answer: (...request) => trainer.openenv.answer(...request),
      upgrade: (...request) => trainer.openenv.upgrade(...request),
    },
    tracing,
    metrics,
    audit,
    logger,
    ...(isBehindWorkers && { clientOf: readClient }),
    ...calls,
  });
  const dataPort = await openDataPort({
    config,
    gateway,
    command: parts.worker,
    version: parts.version,
    isAccessOn: access.isOn,
    maxRowAgeMs: maxRowAgeMs(isAlone),
    store,
    delegates,
    rewardPhases,
    ...calls,
    onReplace: (ended) => logger.error(ended, "a worker has ended; it is replaced"),
  });
  workers = () => dataPort.workers;
  const servers: Server[] = [];
  closers.add(() => Promise.all([dataPort.finish(GRACE_MS), ...servers.map((one) => finish(one, GRACE_MS))]));
  closers.add(() => dataPort.drain());
  const dataUrl = dataUrlOf({ ...config, localUrl: urlOf(dataPort.port, config.host) });

  const trainer = parts.openTrainerServices({
    config,
    store,
    hub,
    access,
    delegates,
    quotas,
    scheduler,
    peers,
    serverId,
    version: parts.version,
    isAlone,
    ownUrls: () => ({
      controlUrl: loopbackUrl(portOf(app.server), config.host),
      dataUrl: loopbackUrl(dataPort.port, config.host),
    }),
    ownPorts: () => [dataPort.port, ...servers.map((one) => (one.address() as AddressInfo | null)?.port ?? 0)],
    now,
    onDone: (outcome) => metrics.rolledOut(outcome.kind === "scored" ? "scored" : outcome.cause),
    logFailure,
  });
  const { app, admin } = openApps({
    config,
    version: parts.version,
    runtime: { engine: engine.name, version: parts.version },
    store,
    hub,
    instances,
    list,
    logs,
    snapshots,
    commands,
    terminals,
    listeners,
    files,
    presign: new Presign({ instances, hub, links, engine }),
    linkHosts,
    services,
    trainerRoutes: trainer.routes,
    tokens,
    access,
    dataUrl,
    dataAccess: !access.isOn ? null : config.idsAreKeys ? "id or token" : "token",
    shown,
    hostRule,
    httpLimits,
    disk,
    metrics,
    tracing,
    audit,
    logger,
    isReady: () => isReady,
  });
  const background = new Background({
    reconciler,
    rollouts: trainer.rollouts,
    sweeps: [
      () => instances.sweep(),
      () => idempotency.sweep(),
      () => links.collect(),
      () => hub.collect(),
      () => snapshots.sweep(),
      ...trainer.sweeps,
    ],
    roundMs,
    logFailure,
  });
  closers.add(() => background.stop());
  const recovered = await maintenance.open();
  await snapshots.sweep();
  await app.ready();
  servers.push(app.server);
  await listen(app.server, config.host, config.controlPort);
  if (admin !== null && config.adminPort !== null) {
    await admin.ready();
    servers.push(admin.server);
    await listen(admin.server, "127.0.0.1", config.adminPort);
  }
  void pool.warmUp().catch(logFailure("filling the pool failed"));
  isReady = wasReady = true;
  background.start();
  closers.add(async () => {
    isReady = false;
    instances.refuseNew();
    await trainer.leave();
  });
  closers.add(async () => {
    if (config.drainTime === null) return;
    isReady = false;
    dataPort.retireConnections();
    retireConnections(app.server);
    await setTimeout(parseDuration(config.drainTime));
  });
  logger.info({ ...recovered, serverId, store: store.name }, "ready");
  audit.started({ version: parts.version, access: access.isOn ? "on" : "off", host: config.host });
  const warning = exposureWarning(config.host, access.isOn);
  if (warning !== null) logger.warn({ host: config.host }, warning);
  const auditRounds = startRounds(async () => audit.flush(), REPEAT_MS / 4, logFailure("the audit log could not be written"));

  let closing: Promise<void> | undefined;
  const close = () =>
    (closing ??= closers.close().finally(async () => {
      await auditRounds.stop();
      audit.stopped();
      logger.flush();
    }));
  return {
    controlUrl: urlOf(portOf(app.server), config.host),
    dataUrl: dataUrl(undefined),
    adminUrl: admin === null ? null : urlOf(portOf(admin.server), "127.0.0.1"),
    access,
    workerPids: () => dataPort.workers?.pids ?? [],
    delegates,
    firstToken: () =>
      createFirstToken(access, tokens, ({ id }) => audit.change("token.created", [id], { owner: null, requestId: null, client: null })),
    close,
    [Symbol.asyncDispose]: close,
  };
}

function ageOf(row: InstanceRow): number {
  return Date.parse(row.updatedAt) - Date.parse(row.createdAt);
}
