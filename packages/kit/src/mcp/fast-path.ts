import type { ServerResponse } from "node:http";
import { type CallToolResult, isObject } from "@aenv/contract";
import type { CompiledEnvironment, CompiledTool, Toolset } from "../compile/environment.ts";
import type { LogLevel } from "../definition/definition.ts";
import { type CallHooks, isPromise } from "../instances/call.ts";
import type { ToolSurface } from "../instances/tool-surface.ts";
import { toLogData } from "../json/to-json.ts";
import { argumentsText } from "./arguments-text.ts";
import { faultOf } from "./fault.ts";
import { LOG_LEVELS, type PlainRequest } from "./message.ts";
import { Reply } from "./reply.ts";
import type { Session } from "./session.ts";

export interface FastPathOptions {
  /** The response to a call becomes a stream after this time. */
  readonly streamAfterMs: number;
  readonly pingMs: number;
}

/** The result of `tools/list` as JSON text, for the 2025 revisions and for that of 2026. */
interface SerializedList {
  readonly legacy: string;
  readonly modern: string;
}

/**
 * Answers `tools/list` and `tools/call`, which are nearly all requests of an agent, at a tenth of the SDK's cost.
 * Its responses are those of the SDK; a differential test compares them.
 */
export class FastPath {
  readonly #options: FastPathOptions;
  readonly #lists = new WeakMap<Toolset, SerializedList>();
  readonly #modernMeta: Readonly<Record<string, unknown>>;

  constructor({ name, version }: CompiledEnvironment, options: FastPathOptions) {
    this.#options = options;
    this.#modernMeta = { "io.modelcontextprotocol/serverInfo": { name, version } };
  }

  canAnswer({ method, name, isModern }: PlainRequest, { tools }: ToolSurface): boolean {
    if (method === "tools/list") return true;
    const tool = tools.get(name);
    // Arguments that are repeated in headers are checked by the SDK.
    return tool !== undefined && !(isModern && tool.mirrorsArguments);
  }

  /** Answers a request for which `canAnswer` is true. */
  answer(request: PlainRequest, body: string, instance: ToolSurface, session: Session | null, response: ServerResponse): void {
    const reply = new Reply(response, this.#options.pingMs);
    const id = JSON.stringify(request.id);
    if (request.method === "tools/list") {
      const list = this.#listOf(instance.tools);
      reply.finish(`{"result":${request.isModern ? list.modern : list.legacy},"jsonrpc":"2.0","id":${id}}`);
      return;
    }
    const tool = instance.tools.get(request.name) as CompiledTool;
    const controller = new AbortController();
    try {
      const result = instance.callTool(tool, request.arguments, hooksFor(request, body, session, reply, controller));
      if (!isPromise(result)) reply.finish(this.#write(result, request.isModern, id));
      else this.#follow(result, request, session, controller, response, reply, id);
    } catch (error) {
      reply.finish(writeFault(error, id));
    }
  }

  /** Serialized once for all episodes that have the same tools. */
  #listOf(toolset: Toolset): SerializedList {
    let list = this.#lists.get(toolset);
    if (list === undefined) {
      const tools = [...toolset.values()].map((tool) => tool.descriptor);
      const modern = { tools, resultType: "complete", ttlMs: 0, cacheScope: "private", _meta: this.#modernMeta };
      list = { legacy: JSON.stringify({ tools }), modern: JSON.stringify(modern) };
      this.#lists.set(toolset, list);
    }
    return list;
  }

  #follow(
    result: Promise<CallToolResult>,
    request: PlainRequest,
    session: Session | null,
    controller: AbortController,
    response: ServerResponse,
    reply: Reply,
    id: string,
  ): void {
    const toStream = setTimeout(() => reply.openStream(), this.#options.streamAfterMs);
    session?.calls.set(request.id, controller);
    // With a session the client cancels by a message, and a lost connection cancels nothing. Without one, a disconnect cancels the call.
    if (session === null) response.once("close", () => response.writableFinished || controller.abort(new Error("the client disconnected")));
    const finish = (message: string) => {
      clearTimeout(toStream);
      session?.calls.delete(request.id);
      reply.finish(message);
    };
    void result.then(
      (done) => finish(this.#write(done, request.isModern, id)),
      (error: unknown) => finish(writeFault(error, id)),
    );
  }

  #write(result: CallToolResult, isModern: boolean, id: string): string {
    const meta = isModern && isObject(result._meta) ? { ...this.#modernMeta, ...result._meta } : this.#modernMeta;
    const full = isModern ? { ...result, resultType: "complete", _meta: meta } : result;
    return `{"result":${JSON.stringify(full)},"jsonrpc":"2.0","id":${id}}`;
  }
}

/** A failure of the platform: an error of the protocol, not a result of the tool. */
function writeFault(error: unknown, id: string): string {
  return `{"jsonrpc":"2.0","id":${id},"error":${JSON.stringify(faultOf(error))}}`;
}

function hooksFor(request: PlainRequest, body: string, session: Session | null, reply: Reply, controller: AbortController): CallHooks {
  return {
    controller,
    inputText: () => argumentsText(body, request.id),
    log: (level, data) => {
      if (!isWanted(level, request, session)) return;
      reply.notify("notifications/message", { level, data: toLogData(data) });
    },
    progress: (done, total, message) => {
      if (request.progressToken === undefined) return;
      reply.notify("notifications/progress", { progressToken: request.progressToken, progress: done, total, message });
    },
  };
}

function isWanted(level: LogLevel, request: PlainRequest, session: Session | null): boolean {
  const lowest = request.isModern ? request.logLevel : (session?.logLevel ?? "debug");
  return lowest !== null && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest);
}
