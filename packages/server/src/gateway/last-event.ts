import { isObject, type PlatformError, parseBoundedJson } from "@aenv/contract";

/** What JSON-RPC calls a failure that is not the fault of the request. */
const INTERNAL_ERROR = -32_603;

/**
 * The last event of a stream whose sandbox was lost before it answered the request. With it, the client gets the same code as for a response
 * that had not begun yet, instead of a broken connection. Null if the body is no JSON-RPC request that expects an answer.
 */
export function lastEvent(body: Uint8Array, { code, message, retryable }: PlatformError, isA2a = false): string | null {
  const id = idOf(body);
  if (id === null) return null;
  const info = {
    "@type": "type.googleapis.com/google.rpc.ErrorInfo",
    reason: code,
    domain: "aenv",
    metadata: { retryable: String(retryable) },
  };
  const answer = { jsonrpc: "2.0", id, error: { code: INTERNAL_ERROR, message, data: isA2a ? [info] : { code, retryable } } };
  return `event: message\ndata: ${JSON.stringify(answer)}\n\n`;
}

function idOf(body: Uint8Array): string | number | null {
  try {
    const request: unknown = parseBoundedJson(new TextDecoder().decode(body));
    if (!isObject(request) || request.jsonrpc !== "2.0" || typeof request.method !== "string") return null;
    return typeof request.id === "string" || typeof request.id === "number" ? request.id : null;
  } catch {
    return null;
  }
}

/** Whether a response is an event stream to which an event can be added. */
export function isEventStream(contentType: string | undefined, contentEncoding: string | undefined): boolean {
  return contentEncoding === undefined && /^text\/event-stream(?:$|[\s;])/i.test(contentType ?? "");
}

/** Follows the bytes of an event stream: an event can only be added after a whole one. */
export class EventFollower {
  #tail = "";

  follow(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#tail = (this.#tail + Buffer.from(bytes.subarray(-LONGEST_END)).toString("latin1")).slice(-LONGEST_END);
  }

  get isBetweenEvents(): boolean {
    return this.#tail === "" || /(?:\n\n|\r\r|\r\n\r\n)$/.test(this.#tail);
  }

  /** The same for a body with the framing of HTTP's chunks, at the end of one. */
  get isBetweenChunkedEvents(): boolean {
    return this.#tail === "" || /(?:\n\n|\r\r|\r\n\r\n)\r\n$/.test(this.#tail);
  }
}

/** An empty line, and the end of a chunk. */
const LONGEST_END = "\r\n\r\n\r\n".length;
