import type { Server, ServerOptions } from "node:http";

/** What a port bears of clients that are slow, idle or many. */
export interface HttpLimits {
  /** For a request's headers, and for a new connection's first word. */
  readonly headersMs: number;
  /** For a whole request; its answer may take as long as it likes. */
  readonly requestMs: number;
  /** Whoever comes when so many are connected is turned away. */
  readonly connections: number;
}

/** Longer than clients and load balancers keep connections, who would lose a request if we closed first. */
export const KEEP_ALIVE_MS = 75_000;

export function serverOptions({ headersMs, requestMs }: HttpLimits): ServerOptions {
  return {
    headersTimeout: Math.min(headersMs, requestMs),
    requestTimeout: requestMs,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Node looks for the slow only so often.
    connectionsCheckingInterval: Math.min(5_000, Math.ceil(headersMs / 4)),
  };
}

export function limitConnections(server: Server, { connections }: HttpLimits): void {
  server.maxConnections = connections;
}
