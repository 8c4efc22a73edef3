import type { IncomingMessage, ServerResponse } from "node:http";
import { isObject, isPlatformError, parseBoundedJson, ReadLimitExceeded } from "@aenv/contract";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { LogLevel } from "../definition/definition.ts";
import { readBody, sendAndClose, sendJson } from "../http/exchange.ts";
import type { ToolSurface } from "../instances/tool-surface.ts";
import { FastPath } from "./fast-path.ts";
import { isId, LOG_LEVELS, parsePlainRequest } from "./message.ts";
import { SdkServer } from "./sdk-server.ts";
import type { Session } from "./session.ts";
import { sendWebResponse, toWebRequest } from "./web.ts";

export interface McpOptions {
  readonly maxBodyBytes: number;
  readonly streamAfterMs: number;
  readonly pingMs: number;
  readonly maxSessions: number;
  /** False in the test that compares both implementations. */
  readonly useFastPath: boolean;
}

/** The code of JSON-RPC for a request that is refused. */
const INVALID_REQUEST = -32_600;

/** The agent API: MCP over Streamable HTTP, for every instance of the process. */
export class McpEndpoint {
  readonly #environment: CompiledEnvironment;
  readonly #options: McpOptions;
  readonly #fastPath: FastPath;
  /** Servers by instance id and role; each is created when a request first needs it. No session is known to two roles. */
  readonly #sdkServers = new Map<string, SdkServer>();

  constructor(environment: CompiledEnvironment, options: McpOptions) {
    this.#environment = environment;
    this.#options = options;
    this.#fastPath = new FastPath(environment, options);
  }

  async answer(instance: ToolSurface, request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#environment.roles !== null && instance.role === null) {
      const message = `Invalid Request: this environment has the roles ${this.#environment.roles.names.join(", ")}; each has its tools at a link of its own`;
      return sendAndClose(response, 400, { jsonrpc: "2.0", error: { code: INVALID_REQUEST, message }, id: null });
    }
    if (request.method !== "POST") return this.#answerWithSdk(instance, request, response, undefined, undefined);
    let text: string;
    try {
      text = await readBody(request, this.#options.maxBodyBytes);
    } catch (error) {
      if (!isPlatformError(error, "request.too_large")) throw error;
      return sendAndClose(response, 413, { jsonrpc: "2.0", error: { code: -32000, message: error.message }, id: null });
    }
    if (!isJson(request.headers["content-type"])) return this.#answerWithSdk(instance, request, response, text, undefined);
    let body: unknown;
    try {
      body = parseBoundedJson(text);
    } catch (error) {
      if (error instanceof ReadLimitExceeded) {
        const message = `Invalid Request: the message is not accepted: ${error.message}`;
        return sendJson(response, 400, { jsonrpc: "2.0", error: { code: INVALID_REQUEST, message }, id: null });
      }
      return this.#answerWithSdk(instance, request, response, text, undefined);
    }
    const session = this.#sessionOf(instance, request);
    if (session !== undefined) {
      const plain = this.#options.useFastPath ? parsePlainRequest(request.headers, body) : null;
      if (plain !== null && this.#fastPath.canAnswer(plain, instance) && !(plain.isModern && session !== null)) {
        if (session !== null) response.setHeader("mcp-session-id", session.id);
        return this.#fastPath.answer(plain, text, instance, session, response);
      }
      if (session !== null && applyToSession(session, body)) return void response.writeHead(202).end();
    }
    return this.#answerWithSdk(instance, request, response, text, body);
  }

  /** The request's session; null if it names none, undefined if it names an unknown one. */
  #sessionOf(instance: ToolSurface, request: IncomingMessage): Session | null | undefined {
    const id = request.headers["mcp-session-id"];
    if (typeof id !== "string") return null;
    return this.#sdkServers.get(keyOf(instance))?.sessions.find(id) ?? undefined;
  }

  async #answerWithSdk(
    instance: ToolSurface,
    request: IncomingMessage,
    response: ServerResponse,
    text: string | undefined,
    body: unknown,
  ): Promise<void> {
    let server = this.#sdkServers.get(keyOf(instance));
    if (server === undefined) {
      server = new SdkServer(this.#environment, instance, this.#options);
      this.#sdkServers.set(keyOf(instance), server);
    }
    const answer = await server.answer(toWebRequest(request, response, text), text, body);
    await sendWebResponse(answer, response);
  }

  /** Ends the sessions and streams of an instance that has ended. */
  forget(instanceId: string): void {
    for (const role of [null, ...(this.#environment.roles?.names ?? [])]) this.#close(keyOf({ id: instanceId, role }));
  }

  close(): void {
    for (const key of [...this.#sdkServers.keys()]) this.#close(key);
  }

  #close(key: string): void {
    void this.#sdkServers.get(key)?.close();
    this.#sdkServers.delete(key);
  }
}

function keyOf({ id, role }: Pick<ToolSurface, "id" | "role">): string {
  return role === null ? id : `${id}/${role}`;
}

function isJson(contentType: string | undefined): boolean {
  return contentType !== undefined && /^application\/json\s*(;|$)/i.test(contentType);
}

/**
 * Applies messages of a session that concern calls on the fast path. True if the message needs no further answer;
 * a log level is also passed to the SDK, which answers it.
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
