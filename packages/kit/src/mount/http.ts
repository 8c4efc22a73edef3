import type { IncomingMessage } from "node:http";
import { boundedChunks, isObject, messageOf, PlatformError, parseBoundedJson, readBoundedText, SseDecoder } from "@aenv/contract";
import { type OutgoingPolicy, sendRequest } from "../outgoing/request.ts";
import { MAX_MESSAGE_BYTES, MAX_UNASKED_BYTES, type McpTransport, type RpcMessage, type TransportEvents } from "./transport.ts";

export interface HttpOptions {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly policy: OutgoingPolicy;
}

const CLOSE_MS = 2_000;

/** Messages as requests to a server that speaks Streamable HTTP. */
export class HttpTransport implements McpTransport {
  readonly #options: HttpOptions;
  readonly #events: TransportEvents;
  readonly #closing = new AbortController();
  #sessionId: string | null = null;
  #protocolVersion: string | null = null;

  constructor(options: HttpOptions, events: TransportEvents) {
    this.#options = options;
    this.#events = events;
  }

  /** A server that does not answer is a fault of the platform, and never a result of a tool. */
  async send(message: RpcMessage, signal?: AbortSignal): Promise<void> {
    try {
      await this.#exchange(message, signal);
    } catch (error) {
      if (signal?.aborted || this.#closing.signal.aborted) throw error;
      const { host } = this.#options.url;
      throw new PlatformError("network.failed", `the MCP server ${host} did not answer: ${messageOf(error)}`, { cause: error });
    }
  }

  async #exchange(message: RpcMessage, signal: AbortSignal | undefined): Promise<void> {
    const answer = await this.#post(message, signal);
    const sessionId = answer.headers["mcp-session-id"];
    if (typeof sessionId === "string") this.#sessionId = sessionId;
    const status = answer.statusCode ?? 0;
    if (status === 404 && this.#sessionId !== null) {
      answer.destroy();
      this.#events.onEnd("it does not know the session of this episode any more");
      return;
    }
    if (status === 202 || status === 204) return void answer.resume();
    if (status >= 400) throw new Error(`it answered with status ${status}: ${(await bodyOf(answer, 8_192)).slice(0, 500)}`);
    const isStream = String(answer.headers["content-type"]).startsWith("text/event-stream");
    const hasAnswered = isStream ? await this.#readStream(answer, message.id) : this.#read(await bodyOf(answer, MAX_MESSAGE_BYTES));
    if (message.id !== undefined && message.method !== undefined && !hasAnswered)
      throw new Error("its answer ended without the result of the request");
  }

  /** Ends the session, as far as the server knows one. */
  async close(): Promise<void> {
    if (this.#sessionId !== null) {
      const { url, policy } = this.#options;
      const signal = AbortSignal.timeout(CLOSE_MS);
      const request = { method: "DELETE", headers: this.#headers(), signal } as const;
      await sendRequest(url, request, policy).then(
        (answer) => answer.destroy(),
        () => {},
      );
    }
    this.#closing.abort(new Error("the episode has ended"));
  }

  #post(message: RpcMessage, signal: AbortSignal | undefined): Promise<IncomingMessage> {
    const { url, policy } = this.#options;
    const either = signal === undefined ? this.#closing.signal : AbortSignal.any([signal, this.#closing.signal]);
    const headers = { ...this.#headers(), "content-type": "application/json", accept: "application/json, text/event-stream" };
    return sendRequest(url, { method: "POST", headers, body: JSON.stringify(message), signal: either }, policy);
  }

  #headers(): Record<string, string> {
    return {
      ...this.#options.headers,
      ...(this.#sessionId !== null && { "mcp-session-id": this.#sessionId }),
      ...(this.#protocolVersion !== null && { "mcp-protocol-version": this.#protocolVersion }),
    };
  }

  /** Whether the stream has had the answer to the request. The server may keep it open for longer. */
  async #readStream(answer: IncomingMessage, id: unknown): Promise<boolean> {
    const decoder = new SseDecoder(MAX_MESSAGE_BYTES);
    for await (const chunk of boundedChunks(answer, { maxBytes: MAX_UNASKED_BYTES })) {
      for (const { data } of decoder.push(chunk)) {
        const message = data === "" ? null : parseBoundedJson(data);
        if (!isObject(message)) continue;
        this.#take(message);
        if (message.id === id && message.method === undefined) {
          answer.destroy();
          return true;
        }
      }
    }
    return false;
  }

  #read(text: string): boolean {
    const value = parseBoundedJson(text);
    const messages = (Array.isArray(value) ? value : [value]).filter((one) => isObject(one));
    for (const message of messages) this.#take(message);
    return messages.length > 0;
  }

  #take(message: RpcMessage): void {
    if (isObject(message.result) && typeof message.result.protocolVersion === "string")
      this.#protocolVersion = message.result.protocolVersion;
    this.#events.onMessage(message);
  }
}

async function bodyOf(answer: IncomingMessage, maxBytes: number): Promise<string> {
  try {
    return await readBoundedText(answer, { maxBytes });
  } catch (error) {
    throw new Error(`its answer was not accepted: ${messageOf(error)}`, { cause: error });
  }
}
