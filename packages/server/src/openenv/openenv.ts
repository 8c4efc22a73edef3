import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { isObject, isPlatformError, PlatformError } from "@aenv/contract";
import * as z from "zod";
import type { Access, Caller } from "../access/access.ts";
import { readBody } from "../http/body.ts";
import type { EnvironmentVersion, Hub } from "../hub/hub.ts";
import type { Tasks } from "../sessions/tasks.ts";
import { WebSocketConnection, type WebSocketLimits, webSocketLimits } from "../web-socket/connection.ts";
import { metadataOf, openApiOf, schemas } from "./documents.ts";
import { answerMcp, type McpSessions, parseFailure, RpcError } from "./mcp.ts";
import { InvalidMessage, parse, parseAction, parseReset } from "./messages.ts";
import { CapacityError, Registry, type RegistryOptions } from "./registry.ts";
import type { OpenEnvSession } from "./session.ts";
import { answerMessage, answerRpc, errorReply, type Reply, shownMessage, tryJson } from "./socket.ts";
import { answerTasks, type TaskRoute, taskRoutes } from "./task-api.ts";

export interface OpenEnvOptions extends RegistryOptions {
  readonly hub: Hub;
  readonly access: Access;
  readonly tasks: Tasks;
  readonly bodyTimeoutMs: number;
  readonly limits?: WebSocketLimits;
  /** Unexpected errors, whose details clients do not get. */
  readonly onFailure: (error: unknown) => void;
}

/** Where OpenEnv's routes begin on the data port: `/openenv/<name@version>/…`, or `/openenv/<token>/<name@version>/…`. */
export const OPENENV = "/openenv/";

/** An answer of plain HTTP. */
export interface HttpReply {
  readonly status: number;
  readonly body: unknown;
}

/** A request that was admitted: who asks, for which environment, and what. */
interface Visit {
  readonly caller: Caller;
  readonly version: EnvironmentVersion;
  readonly ref: string;
  /** The path below the environment, such as `/reset`. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/**
 * The OpenEnv protocol for every published environment. It resets and scores, so it belongs to the trainer API: an agent's token opens
 * nothing of it.
 */
export class OpenEnv {
  readonly #options: OpenEnvOptions;
  readonly #registry: Registry;
  readonly #connections = new Set<WebSocketConnection>();
  #isClosed = false;

  constructor(options: OpenEnvOptions) {
    this.#options = options;
    this.#registry = new Registry(options);
  }

  /** Answers a plain request. Throws `PlatformError` if the caller is refused; `onCaller` is told who it is. */
  async answer(request: IncomingMessage, onCaller: (owner: string) => void): Promise<HttpReply> {
    const visit = await this.#visit(request, onCaller);
    try {
      return await this.#route(request, visit);
    } catch (error) {
      return this.#failed(error);
    }
  }

  /** Serves a WebSocket until it ends. Throws if it is refused. */
  async upgrade(request: IncomingMessage, socket: Duplex, first: Buffer, onCaller: (owner: string) => void): Promise<void> {
    const { caller, ref, path, query } = await this.#enter(request, onCaller);
    if (path !== "/ws" && path !== "/mcp")
      throw new PlatformError("route.not_found", `there is no WebSocket at ${path}; there are /ws and /mcp`);
    let session: OpenEnvSession | null = null;
    let refused: Reply | null = null;
    try {
      const version = await this.#options.hub.resolve(ref, caller);
      session = this.#sessionFor(version, caller, query.get("session_id"));
    } catch (error) {
      refused = this.#refusedSocket(error, ref);
    }
    // The protocol tells a client why it is refused by the answer to its first message, so the connection is accepted first.
    const respond = async (text: string): Promise<string | null> => {
      if (session === null) return null;
      const one = session;
      const mcp = this.#mcpOf({ caller, ref: one.ref }, one);
      const answering = path === "/mcp" ? answerRpc(text, mcp) : answerMessage(text, one, mcp, this.#options.onFailure);
      // The connection is closed without details; the log has them.
      answering.catch(this.#options.onFailure);
      const { text: answer, isLast } = await answering;
      if (!isLast) return answer;
      if (answer !== null) connection.send(answer);
      connection.close(1000);
      return null;
    };
    let connection: WebSocketConnection;
    try {
      connection = WebSocketConnection.accept(request, socket, first, respond, this.#options.limits ?? webSocketLimits);
    } catch (error) {
      if (session !== null) await this.#leave(session, query);
      throw error;
    }
    this.#connections.add(connection);
    if (refused?.text != null) {
      connection.send(refused.text);
      connection.close(1000);
    }
    await connection.gone;
    this.#connections.delete(connection);
    if (session !== null) await this.#leave(session, query);
  }

  sweep(): Promise<void> {
    return this.#registry.sweep();
  }

  /** Ends all sessions and connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    for (const connection of this.#connections) connection.close(1001, "the server is shutting down");
    await this.#registry.close();
  }

  async #visit(request: IncomingMessage, onCaller: (owner: string) => void): Promise<Visit> {
    const entered = await this.#enter(request, onCaller);
    const version = await this.#options.hub.resolve(entered.ref, entered.caller);
    return { ...entered, version, ref: `${version.name}@${version.version}` };
  }

  /** Reads the path and the token, and checks the role. */
  async #enter(request: IncomingMessage, onCaller: (owner: string) => void): Promise<Omit<Visit, "version">> {
    if (this.#isClosed) throw new PlatformError("server.draining", "this server is shutting down; retry later, or at another server");
    const { token, ref, path, query } = readPath(request.url ?? "");
    const { access } = this.#options;
    const caller = await access.identify(token === null ? bearerOf(request.headers) : `Bearer ${token}`);
    onCaller(caller.owner);
    access.assertRole(caller, "trainer", "publisher");
    return { caller, ref, path, query };
  }

  async #route(request: IncomingMessage, visit: Visit): Promise<HttpReply> {
    const { version, path } = visit;
    const { method } = request;
    switch (`${method} ${path}`) {
      case "GET /health":
        return ok({ status: "healthy" });
      case "GET /metadata":
        return ok(metadataOf(version));
      case "GET /schema":
        return ok(schemas);
      case "GET /openapi.json":
        return ok(openApiOf(version));
      case "GET /state":
        return ok(this.#stateOf(visit));
      case "GET /list_environments":
        return ok([version.name]);
      case "POST /reset":
        return ok(await this.#reset(await this.#json(request), visit));
      case "POST /step":
        return ok(await this.#step(await this.#json(request), visit));
      case "POST /mcp":
        return ok(await this.#rpc(request, visit));
      default:
        return this.#taskApi(request, visit);
    }
  }

  async #taskApi(request: IncomingMessage, { version, caller, path }: Visit): Promise<HttpReply> {
    const [, name = "", route = "", ...more] = path.split("/");
    const isKnown = (taskRoutes as readonly string[]).includes(route) && more.length === 0;
    const isMethod = request.method === (route === "splits" ? "GET" : "POST");
    if (!isKnown || !isMethod || name.toLowerCase() !== version.name.toLowerCase()) return { status: 404, body: { detail: "Not Found" } };
    const body = route === "splits" ? null : await this.#json(request);
    const list = await this.#options.tasks.list(`${version.name}@${version.version}`, caller);
    return ok(answerTasks(route as TaskRoute, body, list, version.name));
  }

  /** An episode that is named goes on with later requests of that name; one without a name ends with its request, as in the reference. */
  async #reset(body: unknown, { version, caller, ref }: Visit): Promise<unknown> {
    const data = parseReset(body);
    const known = data.episode_id == null ? null : this.#registry.findEpisode(ref, caller, data.episode_id);
    const session = known ?? this.#registry.open(version, caller, { isAttached: false });
    let isKept = known !== null;
    try {
      const result = await session.reset(data);
      if (data.episode_id != null) {
        this.#registry.nameEpisode(session, data.episode_id);
        isKept = true;
      }
      return result;
    } finally {
      if (!isKept) await this.#registry.end(session);
    }
  }

  async #step(body: unknown, { version, caller, ref }: Visit): Promise<unknown> {
    const { action, episode_id: episodeId } = parse(stepBody, body);
    const parsed = parseAction(action);
    if (episodeId != null) {
      const session = this.#registry.findEpisode(ref, caller, episodeId);
      if (session !== null) return session.step(parsed);
      throw new PlatformError("session.not_found", `there is no episode '${episodeId}'; reset with this episode_id first`);
    }
    return this.#once(version, caller, (session) => session.step(parsed));
  }

  #stateOf({ query, ref, caller }: Visit): unknown {
    const episodeId = query.get("episode_id");
    if (episodeId === null) return { episode_id: null, step_count: 0, env: ref };
    const session = this.#registry.findEpisode(ref, caller, episodeId);
    if (session !== null) return session.state;
    throw new PlatformError("session.not_found", `there is no episode '${episodeId}'; reset with this episode_id first`);
  }

  async #rpc(request: IncomingMessage, visit: Visit): Promise<unknown> {
    const message = tryJson(await this.#text(request));
    return message === undefined ? parseFailure() : answerMcp(message, this.#mcpOf(visit, null, visit.version));
  }

  /** `own` is the session of the connection; null for plain HTTP. */
  #mcpOf({ caller, ref }: Pick<Visit, "caller" | "ref">, own: OpenEnvSession | null, version?: EnvironmentVersion): McpSessions {
    const registry = this.#registry;
    const named = (id: string) => {
      const session = registry.find(id, ref, caller);
      if (session === null) throw new RpcError(-32602, `Unknown session_id: ${id}`);
      return session;
    };
    return {
      use: (id, work) => {
        if (id !== undefined) return work(named(id));
        return own === null ? this.#once(version as EnvironmentVersion, caller, work) : work(own);
      },
      create: () => own ?? registry.open(version as EnvironmentVersion, caller, { isAttached: false }),
      end: async (id) => {
        const session = named(id);
        if (registry.isAttached(session)) throw new RpcError(-32600, `Session ${id} is used by a WebSocket; close that first`);
        await registry.end(session);
      },
    };
  }

  async #once<T>(version: EnvironmentVersion, caller: Caller, work: (session: OpenEnvSession) => Promise<T>): Promise<T> {
    const session = this.#registry.open(version, caller, { isAttached: false });
    try {
      return await work(session);
    } finally {
      await this.#registry.end(session);
    }
  }

  #sessionFor(version: EnvironmentVersion, caller: Caller, id: string | null): OpenEnvSession {
    if (id === null) return this.#registry.open(version, caller, { isAttached: true });
    const session = this.#registry.find(id, `${version.name}@${version.version}`, caller);
    if (session === null) throw new PlatformError("session.not_found", `Unknown session_id: ${id}`);
    if (!this.#registry.attach(session)) throw new PlatformError("session.not_found", `session ${id} is used by another WebSocket`);
    return session;
  }

  /** A session that was made for the connection ends with it; one that was made before goes on. */
  async #leave(session: OpenEnvSession, query: URLSearchParams): Promise<void> {
    if (query.has("session_id")) this.#registry.detach(session);
    else await this.#registry.end(session);
  }

  #refusedSocket(error: unknown, ref: string): Reply {
    if (error instanceof CapacityError)
      return errorReply("CAPACITY_REACHED", error.message, { active_sessions: error.active, max_sessions: error.max });
    if (isPlatformError(error, "session.not_found")) return errorReply("SESSION_ERROR", error.message);
    return errorReply("FACTORY_ERROR", shownMessage(error, this.#options.onFailure), { factory_name: ref });
  }

  #failed(error: unknown): HttpReply {
    if (error instanceof InvalidMessage) return { status: 422, body: { detail: error.problems } };
    if (error instanceof CapacityError) return { status: 429, body: { detail: error.message } };
    const message = shownMessage(error, this.#options.onFailure);
    if (!isPlatformError(error)) return { status: 500, body: { detail: message } };
    const { status, code, retryable } = error;
    return { status, body: { detail: message, error: { code, message, retryable } } };
  }

  /** An empty body is an empty object. */
  async #json(request: IncomingMessage): Promise<unknown> {
    const text = await this.#text(request);
    const value = text.trim() === "" ? {} : tryJson(text);
    if (isObject(value)) return value;
    throw new InvalidMessage([{ type: "json_invalid", loc: ["body"], msg: "the body must be a JSON object", input: null }]);
  }

  async #text(request: IncomingMessage): Promise<string> {
    const { bodyTimeoutMs: timeoutMs, limits = webSocketLimits } = this.#options;
    return (await readBody(request, { maxBytes: limits.maxMessageBytes, timeoutMs })).toString("utf8");
  }
}

const stepBody = z.looseObject({ action: z.record(z.string(), z.unknown()), episode_id: z.string().max(255).nullish() });

function ok(body: unknown): HttpReply {
  return { status: 200, body };
}

/** Clients that cannot set headers put their token into the path. */
export function readPath(url: string): {
  readonly token: string | null;
  readonly ref: string;
  readonly path: string;
  readonly query: URLSearchParams;
} {
  const [whole = "", query = ""] = url.split("?", 2);
  const segments = whole.slice(OPENENV.length).split("/").map(decode);
  const token = segments[0]?.startsWith("aenv_") === true ? (segments.shift() ?? null) : null;
  const [ref = "", ...below] = segments;
  if (ref === "") throw new PlatformError("route.not_found", `write ${OPENENV}<name@version> before the path`);
  while (below.at(-1) === "") below.pop();
  return { token, ref, path: `/${below.join("/")}`, query: new URLSearchParams(query) };
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new PlatformError("route.not_found", "the path is badly escaped");
  }
}

/** A URL such as `https://token:aenv_…@host` is sent as Basic authorization; the token is its password or its user. */
export function bearerOf({ authorization }: IncomingHttpHeaders): string | undefined {
  const [, encoded] = /^basic +(\S+)$/i.exec(authorization?.trim() ?? "") ?? [];
  if (encoded === undefined) return authorization;
  const pair = Buffer.from(encoded, "base64").toString("utf8");
  const at = pair.indexOf(":");
  const [user, password] = at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)];
  return `Bearer ${password.startsWith("aenv_") || user === "" ? password : user}`;
}
