import type { IncomingHttpHeaders } from "node:http";
import { isObject } from "@aenv/contract";
import type { LogLevel } from "../definition/definition.ts";

export const MODERN_VERSION = "2026-07-28";
const LEGACY_VERSIONS: ReadonlySet<string> = new Set(["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"]);

export const LOG_LEVELS: readonly LogLevel[] = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

const VERSION_KEY = "io.modelcontextprotocol/protocolVersion";
const CLIENT_KEY = "io.modelcontextprotocol/clientInfo";
const CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities";
const LOG_LEVEL_KEY = "io.modelcontextprotocol/logLevel";
const ENVELOPE_KEYS: ReadonlySet<string> = new Set([VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY]);

/** A valid `tools/list` or `tools/call` without unusual fields, so that the fast path can answer it. */
export interface PlainRequest {
  readonly id: string | number;
  readonly method: "tools/list" | "tools/call";
  readonly isModern: boolean;
  readonly name: string;
  readonly arguments: Record<string, unknown> | undefined;
  readonly progressToken: string | number | undefined;
  /** The lowest log level that the client requested in this request; only in the 2026 revision. */
  readonly logLevel: LogLevel | null;
}

/**
 * The request, if it is well-formed, of a known revision, with the required headers and without unusual fields; else null.
 * Invalid and unusual requests are left to the SDK.
 */
export function parsePlainRequest(headers: IncomingHttpHeaders, body: unknown): PlainRequest | null {
  if (!isObject(body) || body.jsonrpc !== "2.0" || !isId(body.id)) return null;
  const { id, method } = body;
  if (method !== "tools/call" && method !== "tools/list") return null;
  for (const key in body) if (key !== "jsonrpc" && key !== "id" && key !== "method" && key !== "params") return null;
  if (!acceptsBoth(headers.accept)) return null;
  const params = body.params === undefined ? {} : body.params;
  if (!isObject(params)) return null;
  const meta = params._meta === undefined ? {} : params._meta;
  if (!isObject(meta)) return null;
  const { progressToken } = meta;
  if (progressToken !== undefined && !isId(progressToken)) return null;

  const isModern = isModernRequest(headers, meta, method, params.name);
  if (isModern === null) return null;
  const logLevel = meta[LOG_LEVEL_KEY] === undefined ? null : (meta[LOG_LEVEL_KEY] as LogLevel);

  if (method === "tools/list") {
    for (const key in params) if (key !== "_meta") return null;
    return { id, method, isModern, name: "", arguments: undefined, progressToken, logLevel };
  }
  for (const key in params) if (key !== "_meta" && key !== "name" && key !== "arguments") return null;
  const { name, arguments: args } = params;
  if (typeof name !== "string" || (args !== undefined && !isPlainArguments(args))) return null;
  return { id, method, isModern, name, arguments: args, progressToken, logLevel };
}

/** The SDK drops an argument named `__proto__`. */
function isPlainArguments(args: unknown): args is Record<string, unknown> {
  return isObject(args) && !Object.hasOwn(args, "__proto__");
}

export function isId(value: unknown): value is string | number {
  return typeof value === "string" || (typeof value === "number" && Number.isSafeInteger(value));
}

function acceptsBoth(accept: string | undefined): boolean {
  return accept?.includes("application/json") === true && accept.includes("text/event-stream");
}

/** True for a complete 2026 envelope, false for none, null for an incomplete or unusual one. */
function isModernRequest(headers: IncomingHttpHeaders, meta: Record<string, unknown>, method: string, name: unknown): boolean | null {
  const version = headers["mcp-protocol-version"];
  const hasEnvelope = Object.keys(meta).some((key) => key.startsWith("io.modelcontextprotocol/"));
  if (!hasEnvelope) return version === undefined || LEGACY_VERSIONS.has(version as string) ? false : null;
  if (version !== MODERN_VERSION || meta[VERSION_KEY] !== MODERN_VERSION) return null;
  if (headers["mcp-method"] !== method || (method === "tools/call" && headers["mcp-name"] !== name)) return null;
  if (Object.keys(meta).some((key) => key.startsWith("io.modelcontextprotocol/") && !ENVELOPE_KEYS.has(key))) return null;
  if (!isPlainClient(meta[CLIENT_KEY]) || !isPlainCapabilities(meta[CAPABILITIES_KEY])) return null;
  const level = meta[LOG_LEVEL_KEY];
  return level === undefined || LOG_LEVELS.includes(level as LogLevel) ? true : null;
}

function isPlainClient(client: unknown): boolean {
  if (!isObject(client) || typeof client.name !== "string" || typeof client.version !== "string") return false;
  return Object.keys(client).every((key) => key === "name" || key === "version" || (key === "title" && typeof client.title === "string"));
}

function isPlainCapabilities(capabilities: unknown): boolean {
  if (!isObject(capabilities)) return false;
  return Object.values(capabilities).every((one) => isObject(one) && Object.keys(one).length === 0);
}
