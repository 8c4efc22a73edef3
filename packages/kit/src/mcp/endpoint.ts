import type { IncomingMessage, ServerResponse } from "node:http";
import { isObject, isPlatformError } from "@aenv/contract";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { LogLevel } from "../definition/definition.ts";
import { readBody, sendAndClose } from "../http/exchange.ts";
import type { Instance } from "../instances/instance.ts";
import { FastPath } from "./fast-path.ts";
import { isId, LOG_LEVELS, readPlain } from "./message.ts";
import { SdkServer } from "./sdk-server.ts";
import type { Session } from "./session.ts";
import { sendWebResponse, toWebRequest } from "./web.ts";

export interface McpOptions {
  readonly maxBodyBytes: number;
  readonly streamAfterMs: number;
  readonly pingMs: number;
  readonly maxSessions: number;
  /** Off in the test that compares the two paths. */
  readonly useFastPath: boolean;
}

/** The agent API: MCP over Streamable HTTP, for every instance of the process. */
export class McpEndpoint {
  readonly #environment: CompiledEnvironment;
  readonly #options: McpOptions;
  readonly #hot: FastPath;
  /** Only for instances whose clients have needed it. */
  readonly #cold = new Map<string, SdkServer>();

  constructor(environment: CompiledEnvironment, options: McpOptions) {
    this.#environment = environment;
    this.#options = options;
    this.#hot = new FastPath(environment, options);
  }

  async answer(instance: Instance, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (request.method !== "POST") return this.#goCold(instance, request, response, undefined, undefined);
    let text: string;
    try {
      text = await readBody(request, this.#options.maxBodyBytes);
    } catch (error) {
      if (!isPlatformError(error, "request.too_large")) throw error;
      return sendAndClose(response, 413, { jsonrpc: "2.0", error: { code: -32000, message: error.message }, id: null });
    }
    if (!isJson(request.headers["content-type"])) return this.#goCold(instance, request, response, text, undefined);
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      return this.#goCold(instance, request, response, text, undefined);
    }
    const session = this.#sessionOf(instance, request);
    if (session !== undefined) {
      const plain = this.#options.useFastPath ? readPlain(request.headers, body) : null;
      if (plain !== null && this.#hot.takes(plain, instance) && !(plain.isModern && session !== null)) {
        if (session !== null) response.setHeader("mcp-session-id", session.id);
        return this.#hot.answer(plain, text, instance, session, response);
      }
      if (session !== null && applyToSession(session, body)) return void response.writeHead(202).end();
    }
    return this.#goCold(instance, request, response, text, body);
  }

  /** The request's session; null if it names none, undefined if it names one that is not there. */
  #sessionOf(instance: Instance, request: IncomingMessage): Session | null | undefined {
    const id = request.headers["mcp-session-id"];
    if (typeof id !== "string") return null;
    return this.#cold.get(instance.id)?.sessions.find(id) ?? undefined;
  }

  async #goCold(
    instance: Instance,
    request: IncomingMessage,
    response: ServerResponse,
    text: string | undefined,
    body: unknown,
  ): Promise<void> {
    let cold = this.#cold.get(instance.id);
    if (cold === undefined) {
      cold = new SdkServer(this.#environment, instance, this.#options);
      this.#cold.set(instance.id, cold);
    }
    const answer = await cold.answer(toWebRequest(request, response, text), text, body);
    await sendWebResponse(answer, response);
  }

  /** Ends the sessions and streams of an instance that is gone. */
  forget(instanceId: string): void {
    void this.#cold.get(instanceId)?.close();
    this.#cold.delete(instanceId);
  }

  close(): void {
    for (const id of [...this.#cold.keys()]) this.forget(id);
  }
}

function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/json\s*(;|$)/i.test(contentType);
}

/**
 * Some of what a session says concerns calls that the hot path runs. True if the message is dealt with;
 * a log level is also for the SDK, which answers it.
 */
function applyToSession(session: Session, body: unknown): boolean {
  if (!isObject(body) || !isObject(body.params)) return false;
  if (body.method === "notifications/cancelled" && isId(body.params.requestId)) {
    const call = session.calls.get(body.params.requestId);
    call?.abort(new Error(`the client cancelled the call${typeof body.params.reason === "string" ? `: ${body.params.reason}` : ""}`));
    return call !== undefined;
  }
  const { level } = body.params;
  if (body.method === "logging/setLevel" && LOG_LEVELS.includes(level as LogLevel)) session.logLevel = level as LogLevel;
  return false;
}
