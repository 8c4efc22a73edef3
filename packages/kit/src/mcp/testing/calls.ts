import type { CallToolResult } from "@aenv/contract";
import { MODERN_VERSION } from "../message.ts";
import { type Exchange, exchange, jsonHeaders, type RawRequest } from "./exchange.ts";

export interface CallOptions {
  readonly id?: string | number;
  readonly sessionId?: string;
  readonly meta?: object;
  /** A field that makes the fast path leave the request to the SDK, which ignores it. */
  readonly isOdd?: boolean;
}

/** A `tools/call` of the 2025 revisions. */
export function toolCall(name: string, args: object = {}, { id = 1, sessionId, meta, isOdd = false }: CallOptions = {}): RawRequest {
  const params = { name, arguments: args, ...(meta !== undefined && { _meta: meta }), ...(isOdd && { odd: true }) };
  return {
    headers: { ...jsonHeaders, ...(sessionId !== undefined && { "mcp-session-id": sessionId }) },
    body: { jsonrpc: "2.0", id, method: "tools/call", params },
  };
}

/** The same in the 2026 revision. */
export function modernToolCall(name: string, args: object = {}, meta: object = {}): RawRequest {
  const envelope = {
    "io.modelcontextprotocol/protocolVersion": MODERN_VERSION,
    "io.modelcontextprotocol/clientInfo": { name: "test", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  return {
    headers: { ...jsonHeaders, "mcp-protocol-version": MODERN_VERSION, "mcp-method": "tools/call", "mcp-name": name },
    body: { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args, _meta: { ...envelope, ...meta } } },
  };
}

/** Any message of a session. */
export function sessionMessage(sessionId: string, message: object): RawRequest {
  return { headers: { ...jsonHeaders, "mcp-session-id": sessionId }, body: { jsonrpc: "2.0", ...message } };
}

export async function callTool(url: string, name: string, args: object = {}, options: CallOptions = {}): Promise<CallToolResult> {
  return resultOf(await exchange(url, toolCall(name, args, options)));
}

export function resultOf({ messages, status, text }: Exchange): CallToolResult {
  const last = messages.at(-1) as { result?: CallToolResult } | undefined;
  if (last?.result === undefined) throw new Error(`no result, but ${status} ${text}`);
  return last.result;
}
