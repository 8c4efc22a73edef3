import { headers } from "@aenv/contract";

/** Headers about one connection rather than about the message. */
const HOP_BY_HOP = new Set([
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
]);

/** Names an MCP session. */
export const SESSION = "mcp-session-id";

/** Headers for which the gateway may send a value of its own. */
export const REPLACED: ReadonlySet<string> = new Set(["x-request-id", "traceparent", "tracestate", SESSION]);

/** Headers for the platform, which a sandbox must not see: credentials, routing, host names; and those by which the gateway says where it is. */
const PRIVATE = new Set([
  "host",
  "authorization",
  "cookie",
  "origin",
  "expect",
  "aenvcore-mcpproxy-url",
  "aenvcore-envinstance-id",
  headers.baseUrl,
  headers.needsToken,
]);

export function isEndToEnd(name: string): boolean {
  return !HOP_BY_HOP.has(name);
}

export function isForSandbox(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !PRIVATE.has(name);
}
