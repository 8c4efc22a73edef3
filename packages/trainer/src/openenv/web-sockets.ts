import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { isPlatformError, PlatformError } from "@aenv/contract";
import type { Access, Caller, EnvironmentVersion, Hub } from "@aenv/server/trainer-services";
import type { Admitted } from "./admission.ts";
import { WebSocketConnection, type WebSocketLimits } from "./connection.ts";
import { mcpSessions } from "./mcp-sessions.ts";
import { CapacityError, type Registry } from "./registry.ts";
import type { OpenEnvSession } from "./session.ts";
import { answerMessage, answerRpc, errorReply, type Reply, shownMessage } from "./socket.ts";

export interface WebSocketsOptions {
  readonly hub: Hub;
  readonly access: Pick<Access, "stillValid">;
  readonly limits: WebSocketLimits;
  /** Unexpected errors, whose details clients do not get. */
  readonly onFailure: (error: unknown) => void;
}

/** The session of a connection, and the version that it plays. */
interface Joined {
  readonly session: OpenEnvSession;
  readonly version: EnvironmentVersion;
}

/** The WebSockets of this server, each with a session. */
export class WebSockets {
  readonly #options: WebSocketsOptions;
  readonly #registry: Registry;
  readonly #connections = new Set<WebSocketConnection>();

  constructor(options: WebSocketsOptions, registry: Registry) {
    this.#options = options;
    this.#registry = registry;
  }

  /** Serves a WebSocket until it ends. Throws if there is none at this path. */
  async serve(request: IncomingMessage, socket: Duplex, first: Buffer, { caller, ref, path, query }: Admitted): Promise<void> {
    const { access, hub, limits, onFailure } = this.#options;
    if (path !== "/ws" && path !== "/mcp")
      throw new PlatformError("route.not_found", `there is no WebSocket at ${path}; there are /ws and /mcp`);
    let joined: Joined | null = null;
    let refused: Reply | null = null;
    try {
      const version = await hub.resolve(ref, caller);
      joined = { session: await this.#sessionFor(version, caller, query.get("session_id")), version };
    } catch (error) {
      refused = this.#refusal(error, ref);
    }
    // The protocol tells a client why it is refused by the answer to its first message, so the connection is accepted first.
    const respond = async (text: string): Promise<string | null> => {
      if (joined === null) return null;
      const { session, version } = joined;
      const revoked = await access.stillValid(caller).then(
        () => null,
        (error: unknown) => errorReply("SESSION_ERROR", shownMessage(error, onFailure)),
      );
      if (revoked?.text != null) {
        connection.send(revoked.text);
        connection.close(1008);
        return null;
      }
      const mcp = mcpSessions(this.#registry, caller, version, session);
      const answering = path === "/mcp" ? answerRpc(text, mcp) : answerMessage(text, session, mcp, onFailure);
      // The connection is closed without details; the log has them.
      answering.catch(onFailure);
      const { text: answer, isLast } = await answering;
      if (!isLast) return answer;
      if (answer !== null) connection.send(answer);
      connection.close(1000);
      return null;
    };
    let connection: WebSocketConnection;
    try {
      connection = WebSocketConnection.accept(request, socket, first, respond, limits);
    } catch (error) {
      if (joined !== null) await this.#leave(joined.session, query);
      throw error;
    }
    this.#connections.add(connection);
    if (refused?.text != null) {
      connection.send(refused.text);
      connection.close(1000);
    }
    await connection.gone;
    this.#connections.delete(connection);
    if (joined !== null) await this.#leave(joined.session, query);
  }

  close(): void {
    for (const connection of this.#connections) connection.close(1001, "the server is shutting down");
  }

  async #sessionFor(version: EnvironmentVersion, caller: Caller, id: string | null): Promise<OpenEnvSession> {
    if (id === null) return this.#registry.open(version, caller, { isAttached: true });
    const session = await this.#registry.find(id, version, caller);
    if (session === null) throw new PlatformError("session.not_found", `Unknown session_id: ${id}`);
    if (!this.#registry.attach(session)) throw new PlatformError("session.not_found", `session ${id} is used by another WebSocket`);
    return session;
  }

  /** A session that was made for the connection ends with it; one that was made before goes on. */
  async #leave(session: OpenEnvSession, query: URLSearchParams): Promise<void> {
    if (query.has("session_id")) this.#registry.detach(session);
    else await this.#registry.end(session);
  }

  #refusal(error: unknown, ref: string): Reply {
    if (error instanceof CapacityError)
      return errorReply("CAPACITY_REACHED", error.message, { active_sessions: error.active, max_sessions: error.max });
    if (isPlatformError(error, "session.not_found")) return errorReply("SESSION_ERROR", error.message);
    return errorReply("FACTORY_ERROR", shownMessage(error, this.#options.onFailure), { factory_name: ref });
  }
}
