import { z } from "zod";
import type { ServerConfig } from "../config/config.ts";
import { shownConfig } from "../config/config.ts";
import type { DiskProbe } from "../operations/disk.ts";
import type { Metrics } from "../operations/metrics.ts";
import type { Store } from "../stores/store.ts";
import { openApi, openApiPage } from "./openapi.ts";
import { type ApiRoute, route } from "./route.ts";

export interface OperationRouteOptions {
  readonly store: Store;
  readonly disk: DiskProbe;
  readonly metrics: Metrics;
  readonly config: ServerConfig;
  readonly version: string;
  /** False while the server starts or stops. */
  readonly isReady: () => boolean;
  /** All other routes, for `/openapi.json`. */
  readonly others: readonly ApiRoute[];
}

const readiness = z.object({
  status: z.enum(["ready", "not ready"]),
  store: z.enum(["ok", "unreachable"]),
  disk: z.enum(["ok", "full", "not writable"]),
});

/**
 * Routes that are not public. They need a token on the admin port too: it is on loopback, where the environments of the engine `process` run as
 * well.
 */
function privateRoutes(metrics: Metrics, config: ServerConfig): ApiRoute[] {
  return [
    route({
      method: "GET",
      path: "/metrics",
      summary: "Prometheus metrics",
      answer: { type: "text/plain" },
      tag: "operations",
      roles: ["admin"],
      ownToken: config.metricsToken,
      isRaw: true,
      handle: async ({ reply }) => reply.type(metrics.registry.contentType).send(await metrics.text()),
    }),
    route({
      method: "GET",
      path: "/config",
      summary: "The server's configuration, without secrets",
      answer: z.record(z.string(), z.unknown()),
      tag: "operations",
      roles: ["admin"],
      handle: async () => shownConfig(config),
    }),
  ];
}

/** Whether the process answers, and whether it is ready. Anybody may ask. */
function probeRoutes(options: Omit<OperationRouteOptions, "others">): ApiRoute[] {
  return [
    route({
      method: "GET",
      path: "/health",
      summary: "Liveness: the process answers",
      answer: { type: "application/json", schema: z.object({}) },
      tag: "operations",
      roles: null,
      isRaw: true,
      handle: async () => ({}),
    }),
    route({
      method: "GET",
      path: "/ready",
      summary: "Readiness: the store answers, the disk is writable, and the server is neither starting nor stopping",
      answer: { type: "application/json", schema: readiness },
      tag: "operations",
      roles: null,
      isRaw: true,
      handle: async ({ reply }) => {
        const store = await options.store.ping().then(
          () => "ok",
          () => "unreachable",
        );
        const disk = (await options.disk.check()) ?? "ok";
        const isReady = store === "ok" && disk === "ok" && options.isReady();
        return reply.code(isReady ? 200 : 503).send({ status: isReady ? "ready" : "not ready", store, disk });
      },
    }),
  ];
}

/** The routes of the admin port. */
export function adminRoutes(options: Omit<OperationRouteOptions, "others">): ApiRoute[] {
  return [...probeRoutes(options), ...privateRoutes(options.metrics, options.config)];
}

export function operationRoutes(options: OperationRouteOptions): ApiRoute[] {
  const own: ApiRoute[] = [
    ...adminRoutes(options),
    route({
      method: "GET",
      path: "/openapi.json",
      summary: "This description",
      answer: { type: "application/json", schema: z.looseObject({ openapi: z.string() }) },
      tag: "operations",
      roles: null,
      isRaw: true,
      handle: async () => description,
    }),
    route({
      method: "GET",
      path: "/docs",
      summary: "This description as a page",
      answer: { type: "text/html" },
      tag: "operations",
      roles: null,
      isRaw: true,
      handle: async ({ reply }) => reply.type("text/html; charset=utf-8").send(openApiPage(description)),
    }),
  ];
  const description = openApi([...options.others, ...own], options.version);
  return own;
}
