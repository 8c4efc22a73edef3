import type { ServerResponse } from "node:http";
import type { CallToolResult } from "@aenv/contract";
import type { Blueprint, BlueprintTool } from "../blueprint.ts";
import { type CallHooks, isPromise } from "../call.ts";
import type { LogLevel } from "../definition.ts";
import type { Instance } from "../instance.ts";
import { LOG_LEVELS, type PlainRequest } from "./message.ts";
import { Reply } from "./reply.ts";
import type { Session } from "./session.ts";

export interface HotOptions {
  /** How long a call may take before its answer becomes a stream. */
  readonly streamAfterMs: number;
  readonly pingMs: number;
}

/**
 * Answers `tools/list` and `tools/call`, which are nearly all that an agent ever sends, at a tenth of the SDK's cost.
 * What it answers is what the SDK would answer; a differential test holds it to that.
 */
export class HotPath {
  readonly #blueprint: Blueprint;
  readonly #options: HotOptions;
  readonly #list: string;
  readonly #modernList: string;
  readonly #modernMeta: Readonly<Record<string, unknown>>;
  /** Tools that mirror arguments in headers (2026 revision): the SDK checks those. */
  readonly #mirroring: ReadonlySet<string>;

  constructor(blueprint: Blueprint, options: HotOptions) {
    this.#blueprint = blueprint;
    this.#options = options;
    const tools = [...blueprint.tools.values()].map((tool) => tool.descriptor);
    const { name, version } = blueprint;
    this.#modernMeta = { "io.modelcontextprotocol/serverInfo": { name, version } };
    this.#mirroring = new Set(tools.filter((tool) => JSON.stringify(tool.inputSchema).includes('"x-mcp-header"')).map((tool) => tool.name));
    this.#list = JSON.stringify({ tools });
    this.#modernList = JSON.stringify({ tools, resultType: "complete", ttlMs: 0, cacheScope: "private", _meta: this.#modernMeta });
  }

  takes({ method, name, isModern }: PlainRequest): boolean {
    if (method === "tools/list") return true;
    return this.#blueprint.tools.has(name) && !(isModern && this.#mirroring.has(name));
  }

  /** Answers a request that it takes. */
  answer(request: PlainRequest, instance: Instance, session: Session | null, response: ServerResponse): void {
    const reply = new Reply(response, this.#options.pingMs);
    const id = JSON.stringify(request.id);
    if (request.method === "tools/list") {
      reply.finish(`{"result":${request.isModern ? this.#modernList : this.#list},"jsonrpc":"2.0","id":${id}}`);
      return;
    }
    const tool = this.#blueprint.tools.get(request.name) as BlueprintTool;
    const controller = new AbortController();
    const result = instance.callTool(tool, request.arguments, hooksFor(request, session, reply, controller));
    if (!isPromise(result)) reply.finish(this.#write(result, request.isModern, id));
    else this.#follow(result, request, session, controller, response, reply, id);
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
    // With a session the client cancels by a message, and a broken connection means only that. Without one, hanging up is all it can do.
    if (session === null) response.once("close", () => response.writableFinished || controller.abort(new Error("the client went away")));
    void result.then((done) => {
      clearTimeout(toStream);
      session?.calls.delete(request.id);
      reply.finish(this.#write(done, request.isModern, id));
    });
  }

  #write(result: CallToolResult, isModern: boolean, id: string): string {
    const full = isModern ? { ...result, resultType: "complete", _meta: this.#modernMeta } : result;
    return `{"result":${JSON.stringify(full)},"jsonrpc":"2.0","id":${id}}`;
  }
}

function hooksFor(request: PlainRequest, session: Session | null, reply: Reply, controller: AbortController): CallHooks {
  return {
    controller,
    log: (level, data) => {
      if (!isHeard(level, request, session)) return;
      reply.notify("notifications/message", { level, data });
    },
    progress: (done, total, message) => {
      if (request.progressToken === undefined) return;
      reply.notify("notifications/progress", { progressToken: request.progressToken, progress: done, total, message });
    },
  };
}

function isHeard(level: LogLevel, request: PlainRequest, session: Session | null): boolean {
  const lowest = request.isModern ? request.logLevel : (session?.logLevel ?? "debug");
  return lowest !== null && LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(lowest);
}
