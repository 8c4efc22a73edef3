import { isObject, messageOf, PlatformError } from "@aenv/contract";
import type { McpTransport, RpcMessage } from "./transport.ts";

export interface RequestOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: (done: number, total?: number, message?: string) => void;
  readonly onLog?: (level: string, data: unknown) => void;
}

export interface PeerOptions {
  /** The folders that the server may work in, as `file://` URLs. */
  readonly roots: readonly { readonly uri: string; readonly name: string }[];
  /** The server says that its list of tools has changed. */
  readonly onToolsChanged: () => void;
}

interface Pending extends RequestOptions {
  resolve(result: RpcMessage): void;
  reject(error: unknown): void;
}

const METHOD_NOT_FOUND = -32_601;
/** Requests of the server that are being answered. */
const ANSWERS_AT_ONCE = 16;

/** A server has answered a request with an error. */
export class McpError extends Error {
  override readonly name = "McpError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * One side of a conversation in MCP: sends requests, matches answers, and answers what the server asks. It lists roots, and refuses
 * everything else, such as sampling and elicitation.
 */
export class McpPeer {
  readonly #options: PeerOptions;
  readonly #pending = new Map<number, Pending>();
  #transport: McpTransport | null = null;
  #nextId = 1;
  #answering = 0;
  #end: string | null = null;

  constructor(options: PeerOptions) {
    this.#options = options;
  }

  /** Why the conversation is over; null while it goes on. */
  get end(): string | null {
    return this.#end;
  }

  use(transport: McpTransport): void {
    this.#transport = transport;
  }

  async request(method: string, params: object, options: RequestOptions = {}): Promise<RpcMessage> {
    const { signal, onProgress } = options;
    signal?.throwIfAborted();
    if (this.#end !== null || this.#transport === null) throw lost(this.#end ?? "it was not started");
    const id = this.#nextId++;
    const answer = Promise.withResolvers<RpcMessage>();
    this.#pending.set(id, { ...options, resolve: answer.resolve, reject: answer.reject });
    const cancel = () => {
      answer.reject(signal?.reason);
      void this.notify("notifications/cancelled", { requestId: id, reason: messageOf(signal?.reason) });
    };
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      const withToken = onProgress === undefined ? params : { ...params, _meta: { progressToken: id } };
      // A transport may be slow to send; its failure ends the wait.
      this.#transport.send({ jsonrpc: "2.0", id, method, params: withToken }, signal).catch(answer.reject);
      return await answer.promise;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#pending.delete(id);
    }
  }

  /** Never fails: what a server does not get is no reason to stop. */
  async notify(method: string, params: object): Promise<void> {
    if (this.#end === null) await this.#transport?.send({ jsonrpc: "2.0", method, params }).catch(() => {});
  }

  receive(message: RpcMessage): void {
    const { id, method, params } = message;
    if (typeof method === "string") {
      if (id === undefined || id === null) this.#heard(method, isObject(params) ? params : {});
      else void this.#answer(id, method);
      return;
    }
    const pending = typeof id === "number" ? this.#pending.get(id) : undefined;
    if (pending === undefined) return;
    if (isObject(message.result)) pending.resolve(message.result);
    else pending.reject(errorOf(message.error));
  }

  /** The conversation is over: whoever waits for an answer is told so. */
  finish(reason: string): void {
    if (this.#end !== null) return;
    this.#end = reason;
    for (const { reject } of this.#pending.values()) reject(lost(reason));
  }

  #heard(method: string, params: Readonly<Record<string, unknown>>): void {
    if (method === "notifications/tools/list_changed") this.#options.onToolsChanged();
    if (method === "notifications/message") for (const { onLog } of this.#pending.values()) onLog?.(String(params.level), params.data);
    if (method !== "notifications/progress" || typeof params.progressToken !== "number") return;
    const { progress, total, message } = params;
    if (typeof progress !== "number") return;
    this.#pending
      .get(params.progressToken)
      ?.onProgress?.(progress, typeof total === "number" ? total : undefined, typeof message === "string" ? message : undefined);
  }

  async #answer(id: unknown, method: string): Promise<void> {
    // A server that asks faster than it reads the answers gets none.
    if (this.#answering >= ANSWERS_AT_ONCE) return;
    this.#answering++;
    try {
      const { roots } = this.#options;
      const known = method === "ping" ? {} : method === "roots/list" ? { roots } : null;
      const refused = { code: METHOD_NOT_FOUND, message: `an environment does not answer ${method.slice(0, 100)}` };
      await this.#transport?.send({ jsonrpc: "2.0", id, ...(known === null ? { error: refused } : { result: known }) });
    } catch {
      // Whatever ends the connection is reported by its transport.
    } finally {
      this.#answering--;
    }
  }
}

function errorOf(error: unknown): McpError {
  if (!isObject(error)) return new McpError(-32_603, "the server answered with neither a result nor an error");
  return new McpError(
    typeof error.code === "number" ? error.code : -32_603,
    typeof error.message === "string" ? error.message.slice(0, 8_000) : "the server answered with an error",
  );
}

export function lost(reason: string): PlatformError {
  return new PlatformError("sandbox.lost", `the MCP server has ended: ${reason}`);
}
