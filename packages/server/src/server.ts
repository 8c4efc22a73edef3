import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { hostRuleFor, isLoopback, parseDuration } from "@aenv/contract";
import { exposureWarning } from "./access/access.ts";
import { createFirstToken } from "./access/first-token.ts";
import { openAccess } from "./access/open.ts";
import { openControlPort } from "./api/open.ts";
import { childHandlers } from "./children/requests.ts";
import { openCommands } from "./commands/open.ts";
import { assertSafe, locationOf, openEngine } from "./engine.ts";
import { engineReports } from "./engine-reports.ts";
import { openGateway } from "./gateway/open.ts";
import { openPorts } from "./gateway/ports/open.ts";
import { dataUrlOf } from "./http/data-url.ts";
import { httpLimitsOf } from "./http/limits.ts";
import { loopbackUrl, urlOf } from "./http/listen.ts";
import { openHub } from "./hub/open.ts";
import { findTaskSandbox } from "./instances/containers.ts";
import { maxRowAgeMs, openInstances } from "./instances/open.ts";
import { RewardPhases } from "./instances/reward-phases.ts";
import { type InstanceRow, instanceRows, isLive } from "./instances/row.ts";
import { instanceSettings } from "./instances/settings.ts";
import { Lifecycle } from "./lifecycle/lifecycle.ts";
import { metricSources } from "./metric-sources.ts";
import { defaultModels, ModelPolicy } from "./models/model-policy.ts";
import { createLogger } from "./operations/logger.ts";
import { Metrics } from "./operations/metrics.ts";
import { openOperations } from "./operations/open.ts";
import type { RunningServer, ServerParts } from "./parts.ts";
import { lockHome } from "./peers/home-lock.ts";
import { SandboxClients } from "./sandboxes/client.ts";
import { SnapshotSpace } from "./sandboxes/snapshot-space.ts";
import { inUse } from "./services/in-use.ts";
import { openServices } from "./services/open.ts";
import { serviceRows } from "./services/row.ts";
import { ServiceTargets } from "./services/targets.ts";
import { openPool } from "./slots/open.ts";
import { openStore, sqliteFileOf } from "./stores/open.ts";
import { type DataPort, openDataPort, workerCount } from "./workers/open.ts";
import { readClient } from "./workers/server-routes.ts";

/** Opens every component. If one fails to open, those that are open are closed again. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { config } = parts;
  const logger = createLogger(config.logLevel);
  const logFailure = (message: string) => (error: unknown) => logger.error({ err: error }, message);
  const drainMs = config.drainTime === null ? null : parseDuration(config.drainTime);
  const lifecycle = new Lifecycle({ drainMs, logFailure });
  try {
    return await open({ ...parts, logger, logFailure, lifecycle });
  } catch (error) {
    await lifecycle.close().catch(() => {});
    throw error;
  }
}

interface OpenParts extends ServerParts {
  readonly logger: ReturnType<typeof createLogger>;
  readonly logFailure: (message: string) => (error: unknown) => void;
  readonly lifecycle: Lifecycle;
}

/** Wires the components together, from the store to the ports. The only place that knows them all. */
async function open(parts: OpenParts): Promise<RunningServer> {
  const { config, version, logger, logFailure, lifecycle } = parts;
  const isBehindWorkers = workerCount(config, parts.worker) > 1;
  const now = () => new Date();
  const serverId = `r-${randomBytes(8).toString("hex")}`;
  /** Undefined as long as the data port is not open. */
  let dataPort: DataPort | undefined;
  const workers = () => dataPort?.workers ?? null;

  await mkdir(config.home, { recursive: true, mode: 0o700 });
  const isAlone = !/^rediss?[:+]/.test(config.store);
  if (isAlone) lifecycle.on("close", lockHome(config.home));
  const storeFile = sqliteFileOf(config.store);
  const { audit, tracing, disk, shown } = await openOperations({ ...parts, storeFile, runner: parts.runner[1] });
  const store = await openStore(config.store);
  lifecycle.on("close", () => store.close());
  const rows = instanceRows(store);
  const serviceTable = serviceRows(store);
  const { access, tokens, delegates, quotas } = await openAccess({
    config,
    store,
    now,
    onRevoked: async () => workers()?.tokenRevoked(),
    onDelegateEnded: (token) => workers()?.delegateEnded(token),
  });
  const reports = engineReports({ logger, logFailure, events: () => instances.sandboxEvents, metrics: () => metrics });
  const { engine, runner } = await openEngine(config, { ...parts, ...reports }, parts.engine);
  lifecycle.on("close", () => engine.close());
  assertSafe(config, engine);
  const clients = new SandboxClients((sandboxId) => workers()?.sandboxEnded(sandboxId));
  lifecycle.on("close", () => clients.close());
  /** What most components need. */
  const core = { config, version, serverId, isAlone, now, lifecycle, logger, store, engine, clients, access, delegates, quotas };

  const space = new SnapshotSpace();
  const { scheduler, memoryGate, pool, runtimes, verifier } = openPool({
    ...core,
    space,
    runner,
    versionStatus: (name, version) => hub.recencyOf(name, version),
    onFillFailure: (environment, error) =>
      logger.warn({ err: error, environment }, "starting a ready process failed; it is retried with growing delays"),
  });
  const hub = openHub({
    ...core,
    home: config.home,
    inspect: async (folder, options) => {
      const seen = await verifier.verify(folder, options);
      return seen.tasksProblem ? { ...seen, tasksProblem: shown(seen.tasksProblem) } : seen;
    },
    maxWarm: Math.min(config.poolMax, config.poolPerOwner, config.poolTotal),
    isInUse: inUse(rows, serviceTable),
    ...(parts.builtIns !== undefined && { builtIns: parts.builtIns }),
  });
  const settings = instanceSettings(config, engine);
  const modelRules = config.rolloutModels.length > 0 ? config.rolloutModels : defaultModels(!isLoopback(config.host));
  const ownPorts = () => [dataPort?.port, controlPort.port, controlPort.adminPort].map((port) => port ?? 0);
  const modelPolicy = new ModelPolicy(modelRules, ownPorts);
  const opened = openInstances({
    ...core,
    ...settings,
    handlers: (tools) => ({
      ...childHandlers(
        {
          ...core,
          instances: {
            find: (id) => instances.find(id),
            openChild: (...child) => instances.openChild(...child),
            end: (...end) => instances.end(...end),
          },
          isOccupant: (sandboxId, id) => slots.isOccupant(sandboxId, id),
        },
        tools,
      ),
    }),
    space,
    pool,
    runtimes,
    hub,
    scheduler,
    memoryGate,
    modelPolicy,
    callModel: (...call) => trainer.callModel(...call),
    onModelCalled: (_, answer) => metrics.modelCalled(answer?.turn ?? null),
    isAdministrator: async (owner) => !access.isOn || tokens.isAdministrator(owner),
    location: await locationOf(config, engine),
    machine: hostname(),
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
  const { instances, slots, snapshots, targets, maintenance, list, logs, peers, connections } = opened;
  const taskSandboxes = opened.tasks.sandboxes;
  // The verifier closes before the pool whose processes it uses.
  lifecycle.on("close", () => verifier.close());
  const { services, reconciler } = openServices({
    ...core,
    home: config.home,
    roundMs: settings.roundMs,
    rows: serviceTable,
    instanceRows: rows,
    instances,
    hub,
    egressLimit: settings.egressLimit,
    runtimes,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    shown,
    onFailure: logFailure("reconciling the services failed; it is retried"),
  });
  const commands = openCommands({ ...core, instances, slots, connections, tasks: taskSandboxes });
  const { presign, ...ports } = openPorts({ ...core, slots, instances, hub });
  const trainer = parts.openTrainerServices({
    ...core,
    hub,
    scheduler,
    peers,
    ownUrls: () => ({
      controlUrl: loopbackUrl(controlPort.port ?? 0, config.host),
      dataUrl: loopbackUrl(dataPort?.port ?? 0, config.host),
    }),
    ownPorts,
    modelPolicy,
    onDone: (outcome) => metrics.rolledOut(outcome.kind === "scored" ? "scored" : outcome.cause),
    logFailure,
  });
  const metrics = new Metrics(metricSources({ rows, instances, slots, pool, scheduler, memoryGate, verifier, engine, trainer, workers }));

  const hostRule = hostRuleFor(config.host, config.allowedHosts);
  const httpLimits = httpLimitsOf(config);
  const rewardPhases = new RewardPhases({
    find: (sandboxId) => slots.find(sandboxId),
    onFailure: logFailure("the policy for outgoing connections could not be set back after a reward"),
  });
  const calls = { onUse: (row: InstanceRow) => instances.uses.begin(row), onUsed: (row: InstanceRow) => instances.uses.end(row) };
  const gateway = openGateway({
    ...core,
    targets,
    services: new ServiceTargets(serviceTable, targets),
    ...ports,
    hostRule,
    rewardPhases,
    findTask: (row, container) => findTaskSandbox(taskSandboxes, row, container),
    httpLimits,
    openenv: trainer.openenv,
    tracing,
    metrics,
    audit,
    ...(isBehindWorkers && { clientOf: readClient }),
    ...calls,
  });
  dataPort = await openDataPort({
    ...core,
    gateway,
    command: parts.worker,
    isAccessOn: access.isOn,
    maxRowAgeMs: maxRowAgeMs(isAlone),
    rewardPhases,
    ...calls,
    onReplace: (ended) => logger.error(ended, "a worker has ended; it is replaced"),
  });
  const dataUrl = dataUrlOf({ ...config, localUrl: urlOf(dataPort.port, config.host) });
  const controlPort = openControlPort({
    ...core,
    ...commands,
    runtime: { engine: engine.name, isolated: engine.can.isolates, version },
    hub,
    instances,
    list,
    logs,
    snapshots,
    presign,
    linkHosts: ports.linkHosts,
    services,
    trainerRoutes: trainer.routes,
    tokens,
    dataUrl,
    dataAccess: !access.isOn ? null : config.idsAreKeys ? "id or token" : "token",
    shown,
    hostRule,
    httpLimits,
    disk,
    metrics,
    tracing,
    audit,
  });

  const recovered = await maintenance.open();
  await snapshots.sweep();
  const { controlUrl, adminUrl } = await controlPort.listen();
  void pool.warmUp().catch(logFailure("filling the pool failed"));
  lifecycle.start();
  logger.info({ ...recovered, serverId, store: store.name }, "ready");
  audit.started({ version, access: access.isOn ? "on" : "off", host: config.host });
  const warning = exposureWarning(config.host, access.isOn);
  if (warning !== null) logger.warn({ host: config.host }, warning);
  return {
    controlUrl,
    dataUrl: dataUrl(undefined),
    adminUrl,
    access,
    workerPids: () => workers()?.pids ?? [],
    delegates,
    firstToken: () =>
      createFirstToken(access, tokens, ({ id }) => audit.change("token.created", [id], { owner: null, requestId: null, client: null })),
    close: () => lifecycle.close(),
    [Symbol.asyncDispose]: () => lifecycle.close(),
  };
}

function ageOf(row: InstanceRow): number {
  return Date.parse(row.updatedAt) - Date.parse(row.createdAt);
}
