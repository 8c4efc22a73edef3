import { hostRuleFor, parseDuration } from "@aenv/contract";
import type { Tokens } from "../access/tokens.ts";
import type { Listeners } from "../commands/listeners.ts";
import type { Terminals } from "../commands/terminals.ts";
import { finish, listen, portOf, urlOf } from "../http/listen.ts";
import { retireConnections } from "../http/retire.ts";
import { GRACE_MS, type Lifecycle } from "../lifecycle/lifecycle.ts";
import { type AppOptions, createApp } from "./app.ts";
import { type CommandRouteOptions, commandApi } from "./command-routes.ts";
import { type FileRouteOptions, fileApi } from "./file-routes.ts";
import { hubRoutes } from "./hub-routes.ts";
import { type InstanceRouteOptions, instanceRoutes } from "./instance-routes.ts";
import { adminRoutes, type OperationRouteOptions, operationRoutes } from "./operation-routes.ts";
import { type PortRouteOptions, portRoutes } from "./port-routes.ts";
import type { ApiRoute } from "./route.ts";
import { type ServiceRouteOptions, serviceRoutes } from "./service-routes.ts";
import { type SnapshotRouteOptions, snapshotApi } from "./snapshot-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { serveUpgrades } from "./upgrades.ts";

export interface OpenControlPortOptions
  extends Omit<AppOptions, "routes" | "bodyTimeoutMs" | "onAnswer">,
    InstanceRouteOptions,
    Omit<OperationRouteOptions, "others" | "isReady">,
    PortRouteOptions,
    CommandRouteOptions,
    FileRouteOptions,
    ServiceRouteOptions,
    SnapshotRouteOptions {
  readonly lifecycle: Lifecycle;
  readonly trainerRoutes: readonly ApiRoute[];
  readonly tokens: Tokens;
  readonly terminals: Terminals;
  readonly listeners: Listeners;
}

/** The control port and, if one is configured, the admin port. */
export interface ControlPort {
  /** Begins to accept requests; returns the URLs of both. */
  listen(): Promise<{ readonly controlUrl: string; readonly adminUrl: string | null }>;
  /** Null until it listens. */
  readonly port: number | null;
  /** Null without an admin port, and until it listens. */
  readonly adminPort: number | null;
}

export function openControlPort(options: OpenControlPortOptions): ControlPort {
  const { config, lifecycle, metrics, logger } = options;
  const withReadiness = { ...options, isReady: () => lifecycle.isRunning };
  const routes = [
    ...hubRoutes(options.hub),
    ...instanceRoutes(options),
    ...snapshotApi(options),
    ...portRoutes(options),
    ...commandApi(options),
    ...fileApi(options),
    ...serviceRoutes(options),
    ...options.trainerRoutes,
    ...tokenRoutes(options.tokens),
  ];
  const operations = operationRoutes({ ...withReadiness, others: routes });
  const common: Omit<AppOptions, "routes"> = {
    ...options,
    bodyTimeoutMs: parseDuration(config.bodyTimeout),
    onAnswer: (answer) => {
      metrics.request(answer.method, answer.route, answer.status, answer.durationMs);
      logger.debug(answer, "request");
    },
  };
  const app = createApp({ ...common, routes: [...routes, ...operations] });
  serveUpgrades(app, options);
  const hasAdmin = config.adminPort !== null;
  const admin = hasAdmin ? createApp({ ...common, routes: adminRoutes(withReadiness), hostRule: hostRuleFor("127.0.0.1", []) }) : null;
  lifecycle.on("retire", () => retireConnections(app.server));
  lifecycle.on("finish", () => Promise.all([app, admin].map((one) => one !== null && finish(one.server, GRACE_MS))));
  return {
    listen: async () => {
      await app.ready();
      await listen(app.server, config.host, config.controlPort);
      const controlUrl = urlOf(portOf(app.server), config.host);
      if (admin === null || config.adminPort === null) return { controlUrl, adminUrl: null };
      await admin.ready();
      await listen(admin.server, "127.0.0.1", config.adminPort);
      return { controlUrl, adminUrl: urlOf(portOf(admin.server), "127.0.0.1") };
    },
    get port() {
      return app.server.listening ? portOf(app.server) : null;
    },
    get adminPort() {
      return admin?.server.listening ? portOf(admin.server) : null;
    },
  };
}
