import { hostRuleFor } from "@aenv/contract";
import { collectDefaultMetrics, Registry } from "prom-client";
import { Access } from "../access/access.ts";
import { Tokens, tokenRows } from "../access/tokens.ts";
import { openGateway } from "../gateway/open.ts";
import { PortClients } from "../gateway/ports/clients.ts";
import { LinkHosts } from "../gateway/ports/link-hosts.ts";
import { PortLinks } from "../gateway/ports/links.ts";
import { httpLimitsOf } from "../http/limits.ts";
import { finish, listenWithOthers } from "../http/listen.ts";
import { rewardChangeOf } from "../instances/reward-phases.ts";
import { instanceRows } from "../instances/row.ts";
import { Targets } from "../instances/targets.ts";
import { Audit, REPEAT_MS } from "../operations/audit.ts";
import { CallMetrics } from "../operations/call-metrics.ts";
import { createLogger } from "../operations/logger.ts";
import { noTracing, openTracing } from "../operations/tracing.ts";
import { SandboxClients } from "../sandboxes/client.ts";
import { serviceRows } from "../services/row.ts";
import { ServiceTargets } from "../services/targets.ts";
import type { Channel } from "./channel.ts";
import { ConnectionCount } from "./connection-count.ts";
import type { ToWorker, WorkerSettings } from "./messages.ts";
import { RemoteDelegates } from "./remote-delegates.ts";
import { RemoteStore } from "./remote-store.ts";
import { ReportedUses } from "./reported-uses.ts";
import { RoutesOfServer } from "./server-routes.ts";

/** What the server tells a worker that serves the data port. */
export type Command = Exclude<ToWorker, { type: "open" | "answer" | "error" }>;

/** Connections to sandboxes that were idle for so long are closed. */
const IDLE_MS = 60_000;
/** At most what this interval has counted is lost with a worker that dies. */
const REPORT_MS = 1_000;
const CONNECTIONS_MS = 50;

/** The data port in a worker: the same gateway as in a server that is one process, with the server's store behind the channel. */
export async function openDataPlane(channel: Channel, settings: WorkerSettings): Promise<(command: Command) => void> {
  const { config } = settings;
  const now = () => new Date();
  const logger = createLogger(config.logLevel);
  const audit = new Audit({ write: (event) => logger.info(event, "audit") });
  const tracing = config.otlpUrl === null ? noTracing : await openTracing(config.otlpUrl, settings.version);
  const store = new RemoteStore(channel);
  const targets = new Targets(instanceRows(store), settings.maxRowAgeMs);
  const tokens = new Tokens(tokenRows(store), now);
  const delegates = new RemoteDelegates(channel);
  const clients = new SandboxClients();
  const hostRule = hostRuleFor(config.host, config.allowedHosts);
  const linkHosts = new LinkHosts(config);
  const serverRoutes = new RoutesOfServer(settings.serverSocket, hostRule, linkHosts);
  const calls = new Registry();
  const own = new Registry();
  collectDefaultMetrics({ register: own });
  const callMetrics = new CallMetrics(calls);
  let hasNews = false;
  const uses = new ReportedUses({
    onUsed: (row) => channel.send({ type: "used", row }),
    onUnused: (instanceId) => channel.send({ type: "unused", instanceId }),
  });
  const gateway = openGateway({
    config,
    targets,
    services: new ServiceTargets(serviceRows(store), targets),
    links: new PortLinks(store, now),
    linkHosts,
    clients,
    // Presigned links are served by the server.
    ports: new PortClients(async () => null),
    serverRoutes,
    access: new Access(tokens, settings.isAccessOn, delegates),
    hostRule,
    rewardPhases: {
      enter: ({ slot, egress }) => {
        const row = { slot, ...(egress !== undefined && { egress }) };
        if (rewardChangeOf(row) === null) return null;
        return channel.ask<number>({ what: "enter reward", row }).then((phase) => () => channel.send({ type: "left reward", phase }));
      },
      left: ({ slot, egress }) => {
        const row = { slot, ...(egress !== undefined && { egress }) };
        // The reward may have been computed through another worker.
        return rewardChangeOf(row) === null ? null : channel.ask({ what: "left reward", row }).then(() => {});
      },
    },
    // Its server says how many connections, before it serves the first.
    httpLimits: httpLimitsOf({ ...config, maxConnections: 0 }),
    tracing,
    metrics: {
      call: (...call) => {
        hasNews = true;
        callMetrics.call(...call);
      },
    },
    audit,
    logger,
    onUse: (row) => uses.begin(row),
    onUsed: (row) => uses.end(row),
  });

  const report = async (isAsked: boolean) => {
    hasNews = false;
    const counted = await calls.getMetricsAsJSON();
    channel.send({ type: "metrics", calls: counted, ...(isAsked && { process: await own.getMetricsAsJSON() }) });
  };
  const close = async (graceMs: number) => {
    await finish(gateway.server, graceMs);
    await report(false);
    await serverRoutes.close();
    await clients.close();
    await tracing.close();
    audit.flush(Number.POSITIVE_INFINITY);
    logger.flush();
    channel.send({ type: "finished" });
  };

  await listenWithOthers(gateway.server, config.host, settings.port);
  const connections = new ConnectionCount(gateway.server, (open, applied) => channel.send({ type: "connections", open, applied }));
  every(CONNECTIONS_MS, () => connections.reportChange());
  every(REPORT_MS, () => hasNews && report(false));
  every(IDLE_MS / 2, () => clients.trim(IDLE_MS));
  every(REPEAT_MS / 4, () => audit.flush());
  return (command) => {
    switch (command.type) {
      case "row":
        return targets.note(command.row);
      case "token revoked":
        return tokens.forgetVerified();
      case "delegate ended":
        return delegates.end(command.token);
      case "sandbox ended":
        return void clients.forget(command.sandboxId);
      case "connections":
        return connections.limit(command.limit);
      case "measure":
        return void report(true);
      case "confirm":
        return channel.send({ type: "confirmed", id: command.id });
      case "retire connections":
        return gateway.server.retireConnections();
      case "drain":
        return gateway.drain();
      case "finish":
        return void close(command.graceMs);
    }
  };
}

function every(ms: number, work: () => unknown): void {
  setInterval(work, ms).unref();
}
