import { isObject, ReadLimitExceeded } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { SharedTask } from "../async/shared-task.ts";
import { AnswerLimitError, ValidationError } from "../errors/errors.ts";
import { StatusError } from "../errors/http-errors.ts";
import { type RetryRule, retry } from "../errors/retry.ts";
import { ProtocolError, RpcError } from "../errors/rpc-errors.ts";
import { Deadline } from "../http/deadline.ts";
import { isSuccess, MAX_ANSWER_BYTES, type Transport } from "../http/http.ts";
import { writeJson } from "../http/json.ts";
import { type OnMessage, type RpcMessage, readResult } from "./json-rpc.ts";

export interface McpOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly transport: Transport;
  readonly clock: Clock;
  readonly maxRetries: number;
  /** How long refused connections are retried; as long as any other failure if absent. */
  readonly refusedLimitMs?: number | undefined;
  /** A larger request is refused before it is sent. */
  readonly maxRequestBytes: number;
  /** A larger response, or one whose stream is longer, is not read; 64 MiB if absent. */
  readonly maxAnswerBytes?: number | undefined;
}

export interface McpRequest {
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly rule: RetryRule;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly onMessage?: OnMessage | undefined;
}

interface Session {
  /** Null when the server requires `initialize` but has no sessions. */
  readonly id: string | null;
  readonly protocolVersion: string;
}

interface Reply {
  readonly result: unknown;
  readonly sessionId: string | null;
}

/** Sent as the client's version in `initialize`. */
export const SDK_VERSION = "0.1.0";

const NEWEST_VERSION = "2025-11-25";
const PROTOCOL_VERSIONS: readonly string[] = [NEWEST_VERSION, "2025-06-18", "2025-03-26", "2024-11-05"];
const JSON_HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const INITIALIZE_TIMEOUT_MS = 30_000;
const NOTIFICATION_TIMEOUT_MS = 2_000;
const METHOD_NOT_FOUND = -32601;
/** Requests of the server that are answered at a time; further ones are dropped. */
const MAX_REPLIES = 16;
/** The response to a notification, which nobody reads. */
const MAX_IGNORED_BYTES = 64 * 1024;

/**
 * JSON-RPC requests to one MCP endpoint. The first request is sent without a session, which AEnv's sandboxes accept. A server that
 * requires `initialize` rejects it without running it; then a session is opened and the request is sent again.
 */
export class McpSession {
  readonly #options: McpOptions;
  #session: Session | null = null;
  #opening: SharedTask<Session> | null = null;
  #lastId = 0;
  #replies = 0;

  constructor(options: McpOptions) {
    this.#options = options;
  }

  async request(request: McpRequest): Promise<unknown> {
    const deadline = new Deadline(request.timeoutMs, request.signal);
    const deadlineAt = this.#options.clock.now() + request.timeoutMs;
    try {
      const used = this.#session;
      try {
        return await this.#send(request, used, deadline, deadlineAt);
      } catch (error) {
        if (!needsSession(error, used)) throw error;
      }
      const session = await this.#openSession(used, deadline.signal);
      return await this.#send(request, session, deadline, deadlineAt);
    } finally {
      if (!deadline.isDetached) deadline.close();
    }
  }

  /** Ends the session, if there is one. A failure is ignored. */
  async close(): Promise<void> {
    const session = this.#session;
    this.#session = null;
    if (session?.id) await this.#sendAndForget("DELETE", session, null);
  }

  #send(request: McpRequest, session: Session | null, deadline: Deadline, deadlineAt: number): Promise<unknown> {
    const { rule } = request;
    const { clock, maxRetries, refusedLimitMs } = this.#options;
    const { signal } = deadline;
    return retry(() => this.#post(request, session, deadline), { rule, clock, maxRetries, refusedLimitMs, signal, deadlineAt });
  }

  async #post(request: McpRequest, session: Session | null, deadline: Deadline): Promise<unknown> {
    const id = ++this.#lastId;
    const { method } = request;
    // The request's id, unique for this client, is its progress token.
    const params = request.onMessage === undefined ? request.params : { ...request.params, _meta: { progressToken: id } };
    const body = writeJson({ jsonrpc: "2.0", id, method, params });
    this.#checkSize(method, body);
    const onMessage = (message: RpcMessage) => this.#handleMessage(message, session, request.onMessage);
    try {
      return (await this.#exchange(id, body, this.#headers(session), onMessage, deadline)).result;
    } catch (error) {
      if (deadline.signal.aborted && session?.id) this.#cancel(id, session);
      throw error;
    }
  }

  async #exchange(id: number, body: string, headers: Record<string, string>, onMessage: OnMessage, deadline: Deadline): Promise<Reply> {
    const { url, transport, maxAnswerBytes = MAX_ANSWER_BYTES } = this.#options;
    const answer = await transport.send({ method: "POST", url, headers, body, signal: deadline.signal });
    if (!isSuccess(answer.status)) throw await StatusError.of(answer);
    try {
      const result = await readResult(answer, id, onMessage, deadline, maxAnswerBytes);
      return { result, sessionId: answer.header("mcp-session-id") };
    } catch (error) {
      throw error instanceof ReadLimitExceeded ? new AnswerLimitError({ method: "POST", url }, error) : error;
    }
  }

  #headers(session: Session | null): Record<string, string> {
    return {
      ...this.#options.headers,
      ...JSON_HEADERS,
      "mcp-protocol-version": session?.protocolVersion ?? NEWEST_VERSION,
      ...(session?.id && { "mcp-session-id": session.id }),
    };
  }

  #checkSize(method: string, body: string): void {
    const limit = this.#options.maxRequestBytes;
    // No character takes more than three bytes per unit, so most bodies need no counting.
    if (body.length * 3 <= limit) return;
    const size = new TextEncoder().encode(body).length;
    if (size <= limit) return;
    throw new ValidationError(`this ${method} request has ${size} bytes; at most ${limit} may be sent (maxRequestBytes)`, {
      code: "request.too_large",
      details: { size, limit },
    });
  }

  /** A new session in place of `used`; callers that need one at the same time get the same one. */
  #openSession(used: Session | null, signal: AbortSignal): Promise<Session> {
    if (this.#session !== used && this.#session !== null) return Promise.resolve(this.#session);
    this.#opening ??= new SharedTask(async (opening) => {
      try {
        this.#session = await this.#initialize(opening);
        return this.#session;
      } finally {
        this.#opening = null;
      }
    });
    return this.#opening.join(signal);
  }

  async #initialize(signal: AbortSignal): Promise<Session> {
    const deadline = new Deadline(INITIALIZE_TIMEOUT_MS, signal);
    try {
      const id = ++this.#lastId;
      const params = { protocolVersion: NEWEST_VERSION, capabilities: {}, clientInfo: { name: "aenv-sdk", version: SDK_VERSION } };
      const body = JSON.stringify({ jsonrpc: "2.0", id, method: "initialize", params });
      const headers = { ...this.#options.headers, ...JSON_HEADERS };
      const { result, sessionId } = await this.#exchange(id, body, headers, () => {}, deadline);
      const session = { id: sessionId, protocolVersion: agreedVersion(result) };
      await this.#sendAndForget("POST", session, { jsonrpc: "2.0", method: "notifications/initialized" });
      return session;
    } finally {
      if (!deadline.isDetached) deadline.close();
    }
  }

  #handleMessage(message: RpcMessage, session: Session | null, onMessage: OnMessage | undefined): void {
    if (message.id === undefined) {
      onMessage?.(message);
      return;
    }
    if (this.#replies >= MAX_REPLIES) return;
    // A request of the server: only `ping` is supported.
    const { id, method } = message;
    const reply =
      method === "ping" ? { result: {} } : { error: { code: METHOD_NOT_FOUND, message: `method '${method}' is not supported` } };
    this.#replies++;
    void this.#sendAndForget("POST", session, { jsonrpc: "2.0", id, ...reply }).finally(() => this.#replies--);
  }

  #cancel(requestId: number, session: Session): void {
    const params = { requestId, reason: "the caller cancelled the request" };
    void this.#sendAndForget("POST", session, { jsonrpc: "2.0", method: "notifications/cancelled", params });
  }

  /** Sends a message that needs no response; failures are ignored. */
  async #sendAndForget(method: "POST" | "DELETE", session: Session | null, message: unknown): Promise<void> {
    const deadline = new Deadline(NOTIFICATION_TIMEOUT_MS);
    try {
      const { url, transport } = this.#options;
      const body = message === null ? {} : { body: JSON.stringify(message) };
      const answer = await transport.send({ method, url, headers: this.#headers(session), ...body, signal: deadline.signal });
      await answer.text(MAX_IGNORED_BYTES);
    } catch {
      // A lost notification only costs the server some work.
    } finally {
      deadline.close();
    }
  }
}

function agreedVersion(result: unknown): string {
  const version = isObject(result) ? String(result.protocolVersion) : "none";
  if (PROTOCOL_VERSIONS.includes(version)) return version;
  throw new ProtocolError(`the server uses MCP version ${version}; this client supports ${PROTOCOL_VERSIONS.join(", ")}`);
}

/** The server rejected the request without running it, because it requires a session or does not know the one that was sent. */
function needsSession(error: unknown, used: Session | null): boolean {
  if (used !== null) return used.id !== null && error instanceof StatusError && error.status === 404;
  if (error instanceof StatusError) return error.status === 400 && /session|initiali[sz]|protocol version/i.test(error.body);
  return error instanceof RpcError && /not (?:been )?initiali[sz]ed|before initiali[sz]ation/i.test(error.message);
}
