/** Headers that speak of one connection and not of the message. */
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

/** What is said to the platform and is none of a sandbox's business: credentials, routing, names. */
const PRIVATE = new Set(["host", "authorization", "cookie", "origin", "expect", "aenvcore-mcpproxy-url", "aenvcore-envinstance-id"]);

export function isEndToEnd(name: string): boolean {
  return !HOP_BY_HOP.has(name);
}

export function isForSandbox(name: string): boolean {
  return !HOP_BY_HOP.has(name) && !PRIVATE.has(name);
}
