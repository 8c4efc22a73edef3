import type { Server, ServerOptions } from "node:http";
import { parseDuration } from "@aenv/contract";

/** Limits of a port for slow, idle and too many clients. */
export interface HttpLimits {
  /** Timeout for the request headers, and for the first request of a connection. */
  readonly headersMs: number;
  /** Timeout for receiving a whole request; the response may take any time. */
  readonly requestMs: number;
  /** The most open connections; further ones are closed at once. */
  readonly connections: number;
}

/** The limits of the configuration. */
export function httpLimitsOf(config: {
  readonly headersTimeout: string;
  readonly requestTimeout: string;
  readonly maxConnections: number;
}): HttpLimits {
  return {
    headersMs: parseDuration(config.headersTimeout),
    requestMs: parseDuration(config.requestTimeout),
    connections: config.maxConnections,
  };
}

/** Longer than clients and load balancers keep idle connections: they would lose a request if the server closed first. */
export const KEEP_ALIVE_MS = 75_000;

export function serverOptions({ headersMs, requestMs }: HttpLimits): ServerOptions {
  return {
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node checks for timeouts at this interval.
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(headersMs / 4)),
  };
}

export function limitConnections(server: Server, { connections }: HttpLimits): void {
  server.maxConnections = connections;
}
