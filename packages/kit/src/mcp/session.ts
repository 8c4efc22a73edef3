import type { McpServer, WebStandardStreamableHTTPServerTransport } from "@modelcontextprotocol/server";
import type { LogLevel } from "../definition/definition.ts";
import type { ToolSurface } from "../instances/tool-surface.ts";

/** The session of a client of the 2025 revisions. */
export interface Session {
  readonly id: string;
  readonly transport: WebStandardStreamableHTTPServerTransport;
  readonly server: McpServer;
  /** The tools of the server, updated before each request. */
  readonly tools: { offer(instance: ToolSurface): void };
  /** Calls on the fast path, by request id, so that the client can cancel them. */
  readonly calls: Map<string | number, AbortController>;
  logLevel: LogLevel;
}

/** The sessions of an instance; when there are too many, the least recently used idle one is ended. */
export class Sessions {
  readonly #byId = new Map<string, Session>();
  readonly #max: number;

  constructor(max: number) {
    this.#max = max;
  }

  get size(): number {
    return this.#byId.size;
  }

  /** Finds a session and makes it the most recently used. */
  find(id: string): Session | null {
    const session = this.#byId.get(id);
    if (session === undefined) return null;
    this.#byId.delete(id);
    this.#byId.set(id, session);
    return session;
  }

  add(session: Session): void {
    this.#byId.set(session.id, session);
    if (this.#byId.size <= this.#max) return;
    const idle = [...this.#byId.values()].find((one) => one.calls.size === 0 && one !== session);
    if (idle !== undefined) this.end(idle.id);
  }

  end(id: string): void {
    const session = this.#byId.get(id);
    if (session === undefined) return;
    this.#byId.delete(id);
    for (const controller of session.calls.values()) controller.abort(new Error("the session was ended"));
    void session.server.close();
  }

  endAll(): void {
    for (const id of [...this.#byId.keys()]) this.end(id);
  }
}
