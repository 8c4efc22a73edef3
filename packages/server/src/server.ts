import { randomBytes } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { hostname } from "node:os";
import { PlatformError, parseDuration } from "@aenv/contract";
import { ProcessEngine, type SandboxEngine } from "@aenv/sandbox";
import { Access } from "./access/access.ts";
import { FairQueue } from "./access/fair-queue.ts";
import { Quotas } from "./access/quotas.ts";
import { type TokenRow, Tokens } from "./access/tokens.ts";
import { type AppOptions, createApp } from "./api/app.ts";
import { hubRoutes } from "./api/hub-routes.ts";
import { instanceRoutes } from "./api/instance-routes.ts";
import { adminRoutes, operationRoutes } from "./api/operation-routes.ts";
import { tokenRoutes } from "./api/token-routes.ts";
import type { ServerConfig } from "./config.ts";
import { Gateway } from "./gateway/gateway.ts";
import { isLoopback, visitorRule } from "./gateway/visitors.ts";
import { openHub } from "./hub/open.ts";
import { BoxClients } from "./instances/box-client.ts";
import { Hosts } from "./instances/hosts.ts";
import { Idempotency, type IdempotencyRow } from "./instances/idempotency.ts";
import { inspector } from "./instances/inspector.ts";
import { Instances } from "./instances/instances.ts";
import { InstanceList } from "./instances/list.ts";
import { InstanceLogs } from "./instances/logs.ts";
import { Placement } from "./instances/placement.ts";
import { Pool } from "./instances/pool.ts";
import { Recovery } from "./instances/recovery.ts";
import { type ReplicaRow, Replicas } from "./instances/replicas.ts";
import { type InstanceRow, instanceIndexes, isLive } from "./instances/row.ts";
import { Targets } from "./instances/targets.ts";
import { finish, listen, urlOf } from "./listen.ts";
import { lockHome } from "./lock.ts";
import { createLogger } from "./operations/logger.ts";
import { Metrics } from "./operations/metrics.ts";
import { noTracing, openTracing } from "./operations/tracing.ts";
import { startRounds } from "./rounds.ts";
import { Collection } from "./stores/collection.ts";
import { openStore } from "./stores/open.ts";

export interface ServerParts {
  readonly config: ServerConfig;
  /** The blank runner's command line; the server knows environments only by their doors. */
  readonly runner: readonly string[];
  readonly version: string;
  /** Processes of this machine unless told otherwise. */
  readonly engine?: SandboxEngine;
}

export interface RunningServer extends AsyncDisposable {
  readonly controlUrl: string;
  readonly dataUrl: string;
  /** On loopback only; null unless configured. */
  readonly adminUrl: string | null;
  /** For who starts the server: to make the first token. */
  readonly access: Access;
  /** Takes nothing new, lets calls in flight finish, and ends or hands over what runs. */
  close(): Promise<void>;
}

const ROUND_MS = 3_000;
const SWEEP_MS = 5 * 60_000;
const GRACE_MS = 10_000;
/** An empty host waits this long for the next episode. */
const IDLE_HOST_MS = 60_000;

/** Opens every room and puts them together. The only place that knows concrete classes. */
export async function startServer(parts: ServerParts): Promise<RunningServer> {
  const { config } = parts;
  demandSafe(config);
  await mkdir(config.home, { recursive: true, mode: 0o700 });
  const isAlone = !/^rediss?[:+]/.test(config.store);
  const unlock = isAlone ? lockHome(config.home) : () => {};
  const now = () => new Date();
  const logger = createLogger(config.logLevel);
  const tracing = config.otlpUrl === null ? noTracing : await openTracing(config.otlpUrl, parts.version);
  const store = await openStore(config.store);
  const replica = `r-${randomBytes(8).toString("hex")}`;
  const engine = parts.engine ?? new ProcessEngine({ home: config.home });
  const clients = new BoxClients();
  const startTimeoutMs = parseDuration(config.startTimeout);

  const rows = new Collection<InstanceRow>(store, "instance", instanceIndexes);
  const tokens = new Tokens(new Collection<TokenRow>(store, "token", () => ({})), now);
  const access = new Access(tokens, config.access === "on" || (config.access === "auto" && !isLoopback(config.host)));
  const quotas = new Quotas({ instances: config.maxInstances, createsPerSecond: config.createsPerSecond, blobBytes: config.blobBytes });
  const queue = new FairQueue({ atOnce: config.startsAtOnce, maxWaiting: 50_000 });
  const pool = new Pool({
    engine,
    clients,
    runner: parts.runner,
    variables: config.otlpUrl === null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: config.otlpUrl },
    replica,
    min: config.poolMin,
    max: config.poolMax,
    startTimeoutMs,
    memoryMb: config.memoryMb,
    now: Date.now,
  });
  const hosts = new Hosts({ pool, maxHosts: config.maxHosts, spreadAt: 64 });
  const hub = openHub({
    home: config.home,
    store,
    quotas,
    now,
    inspect: inspector({ pool, clients, startTimeoutMs }),
    isInUse: inUse(rows),
  });
  const placement = new Placement({
    pool,
    hosts,
    clients,
    bundleFolder: (digest) => hub.bundleFolder(digest),
    startTimeoutMs,
    onExit: (ids, exit) =>
      void instances
        .onBoxExit(ids, exit.reason)
        .catch((error: unknown) => logger.error({ err: error, ids }, "a box ended and its instances could not be marked")),
  });
  const targets = new Targets(rows);
  const metrics = new Metrics({
    liveInstances: () => rows.count("live", "yes"),
    pool: () => pool.sizes(),
    hosts: () => hosts.size,
    waiting: () => queue.depth,
  });
  const idempotency = new Idempotency(new Collection<IdempotencyRow>(store, "idempotency", () => ({})), now);
  const instances = new Instances({
    rows,
    idempotency,
    hub,
    quotas,
    queue,
    placement,
    replica,
    defaultTtl: config.defaultTtl,
    defaultIdleSeconds: config.idleAfter === null ? null : parseDuration(config.idleAfter) / 1_000,
    now,
    onChange: (row) => {
      targets.note(row);
      if (row.events.at(-1)?.what === "running") metrics.started("running", Date.parse(row.updatedAt) - Date.parse(row.createdAt));
      if (row.status === "Failed" || row.status === "Terminated") metrics.ended(row.status);
      logger.debug({ instanceId: row.id, status: row.status, reason: row.reason }, "instance");
    },
  });
  const replicas = new Replicas({
    id: replica,
    place: `${hostname()}:${config.home}`,
    rows: new Collection<ReplicaRow>(store, "replica", () => ({})),
    now,
    isAlone,
  });
  const recovery = new Recovery({ engine, rows, instances, placement, hosts, replicas, clients });

  let isReady = false;
  const visitors = visitorRule(config.host, config.allowedHosts);
  const gateway = new Gateway({
    targets,
    clients,
    access,
    idsAreKeys: config.idsAreKeys,
    visitors,
    maxBodyBytes: config.maxBodyBytes,
    tracing,
    onUse: (row) => instances.touch(row),
    onCall: ({ door, status, end, durationMs, requestId, instanceId }) => {
      metrics.call(door ?? "none", status, end, durationMs);
      logger.debug({ requestId, instanceId, door, status, end, durationMs }, "call");
    },
  });
  await listen(gateway.server, config.host, config.dataPort);
  const dataUrl = config.publicUrl?.replace(/\/$/, "") ?? urlOf(gateway.server, config.host);

  const routes = [
    ...hubRoutes({ hub, controlUrl: () => config.publicUrl ?? urlOf(app.server, config.host) }),
    ...instanceRoutes({ instances, list: new InstanceList(rows), logs: new InstanceLogs(placement), hub, dataUrl }),
    ...tokenRoutes(tokens),
  ];
  const operations = operationRoutes({ store, metrics, config, version: parts.version, isReady: () => isReady, others: routes });
  const common: Omit<AppOptions, "routes"> = {
    access,
    visitors,
    logger,
    maxBodyBytes: 64 * 1024 * 1024,
    tracing,
    onAnswer: ({ method, route, status, durationMs }) => metrics.request(method, route, status, durationMs),
  };
  const app = createApp({ ...common, routes: [...routes, ...operations] });

  const admin =
    config.adminPort === null
      ? null
      : createApp({ ...common, routes: adminRoutes(metrics, config), visitors: visitorRule("127.0.0.1", []) });
  await replicas.beat();
  const recovered = await recovery.run();
  logger.info({ ...recovered, replica, store: store.name }, "ready");
  const tidy = async () => {
    await replicas.beat();
    if ((await replicas.others()).some((other) => !other.isAlive))
      logger.warn(await recovery.run(), "another server has died; what it left is looked after");
    await hosts.closeIdle(IDLE_HOST_MS);
    await pool.trim();
  };
  const sweep = async () => {
    await idempotency.sweep();
    await hub.collect();
  };
  const onFailure = (error: unknown) => logger.error({ err: error }, "a round failed");
  const rounds = [startRounds(tidy, ROUND_MS, onFailure), startRounds(sweep, SWEEP_MS, onFailure)];
  await app.ready();
  await listen(app.server, config.host, config.controlPort);
  if (admin !== null && config.adminPort !== null) {
    await admin.ready();
    await listen(admin.server, "127.0.0.1", config.adminPort);
  }
  void pool.warmUp().catch((error: unknown) => logger.error({ err: error }, "the pool cannot be filled"));
  isReady = true;

  const close = async () => {
    isReady = false;
    await Promise.all(rounds.map((one) => one.stop()));
    instances.drain();
    gateway.drain();
    await Promise.all([app.server, gateway.server, ...(admin === null ? [] : [admin.server])].map((one) => finish(one, GRACE_MS)));
    await instances.close();
    const heirs = (await replicas.others()).filter((one) => one.isAlive && one.row.place === replicas.place);
    if (heirs.length === 0)
      for await (const { key } of rows.each({ index: "liveReplica", value: replica })) await instances.end(key, "the server was stopped");
    await pool.close();
    await hosts.closeIdle(0);
    await replicas.leave();
    await clients.close();
    await engine.close();
    await store.close();
    await tracing.close().catch(() => {});
    unlock();
  };
  let closing: Promise<void> | undefined;
  const closeOnce = () => (closing ??= close());
  return {
    controlUrl: urlOf(app.server, config.host),
    dataUrl,
    adminUrl: admin === null ? null : urlOf(admin.server, "127.0.0.1"),
    access,
    close: closeOnce,
    [Symbol.asyncDispose]: closeOnce,
  };
}

/** A process is a weak wall: who lets strangers in must say that it is meant. */
function demandSafe(config: ServerConfig): void {
  if (isLoopback(config.host) || config.allowProcessEngine) return;
  throw new PlatformError(
    "request.invalid",
    `listening on ${config.host} lets others run code in plain processes of this machine, which isolate little; set allowProcessEngine if that is meant, or listen on 127.0.0.1`,
  );
}

/** Whether live instances use a version, which then cannot be deleted. */
function inUse(rows: Collection<InstanceRow>): (name: string, version: string) => Promise<boolean> {
  return async (name, version) => {
    for await (const { value: row } of rows.each({ index: "environment", value: name })) {
      if (isLive(row) && row.environment.version === version) return true;
    }
    return false;
  };
}
