/** A message of JSON-RPC that was checked to be an object. */
export type RpcMessage = Readonly<Record<string, unknown>>;

/** What a transport reports to its peer. */
export interface TransportEvents {
  /** Called with each message of the server. */
  onMessage(message: RpcMessage): void;
  /** The connection is over: why, in words. Called once. */
  onEnd(reason: string): void;
}

/** How messages reach one MCP server. */
export interface McpTransport {
  /** Rejects if the message could not be sent, or has no answer. */
  send(message: RpcMessage, signal?: AbortSignal): Promise<void>;
  /** Ends the connection, and the server if it belongs to it. Never fails. */
  close(): Promise<void>;
}

/** One message or answer of a server. A larger one ends the connection. */
export const MAX_MESSAGE_BYTES = 16 * 1_024 ** 2;
/** What a server may send between two answers that were waited for. */
export const MAX_UNASKED_BYTES = 64 * 1_024 ** 2;
