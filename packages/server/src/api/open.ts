import { hostRuleFor, parseDuration } from "@aenv/contract";
import type { FastifyInstance } from "fastify";
import type { Tokens } from "../access/tokens.ts";
import type { Listeners } from "../commands/listeners.ts";
import type { Terminals } from "../commands/terminals.ts";
import { type AppOptions, createApp } from "./app.ts";
import { type CommandRooms, commandApi } from "./command-routes.ts";
import { type FileRooms, fileApi } from "./file-routes.ts";
import { hubRoutes } from "./hub-routes.ts";
import { type InstanceRooms, instanceRoutes } from "./instance-routes.ts";
import { adminRoutes, type OperationRooms, operationRoutes } from "./operation-routes.ts";
import { type PortRooms, portRoutes } from "./port-routes.ts";
import type { ApiRoute } from "./route.ts";
import { type ServiceRooms, serviceRoutes } from "./service-routes.ts";
import { type SnapshotRooms, snapshotApi } from "./snapshot-routes.ts";
import { tokenRoutes } from "./token-routes.ts";
import { serveUpgrades } from "./upgrades.ts";

export interface OpenAppsOptions
  extends Omit<AppOptions, "routes" | "bodyTimeoutMs" | "onAnswer">,
    InstanceRooms,
    Omit<OperationRooms, "others">,
    PortRooms,
    CommandRooms,
    FileRooms,
    ServiceRooms,
    SnapshotRooms {
  readonly trainerRoutes: readonly ApiRoute[];
  readonly tokens: Tokens;
  readonly terminals: Terminals;
  readonly listeners: Listeners;
}

/** The HTTP applications of the control port and, if one is configured, of the admin port. */
export function openApps(options: OpenAppsOptions): { readonly app: FastifyInstance; readonly admin: FastifyInstance | null } {
  const { config, metrics, logger } = options;
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
  const operations = operationRoutes({ ...options, others: routes });
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
  if (config.adminPort === null) return { app, admin: null };
  return { app, admin: createApp({ ...common, routes: adminRoutes(options), hostRule: hostRuleFor("127.0.0.1", []) }) };
}
