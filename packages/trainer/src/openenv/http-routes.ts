import type { IncomingMessage } from "node:http";
import { isObject, isPlatformError, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "@aenv/server/trainer-services";
import { readBody } from "@aenv/server/trainer-services";
import * as z from "zod";
import type { Tasks } from "../sessions/tasks.ts";
import type { Admitted } from "./admission.ts";
import { metadataOf, openApiOf, schemas } from "./documents.ts";
import { answerMcp, parseFailure } from "./mcp.ts";
import { mcpSessions } from "./mcp-sessions.ts";
import { InvalidMessage, parse, parseAction, parseReset, tryMessage } from "./messages.ts";
import { CapacityError, type Registry } from "./registry.ts";
import type { OpenEnvSession } from "./session.ts";
import { shownMessage } from "./socket.ts";
import { answerTasks, type TaskRoute, taskRoutes } from "./task-api.ts";

export interface HttpRoutesOptions {
  readonly tasks: Tasks;
  readonly maxBodyBytes: number;
  readonly bodyTimeoutMs: number;
  /** Unexpected errors, whose details clients do not get. */
  readonly onFailure: (error: unknown) => void;
}

/** A plain request to a version; its `ref` is `name@version`. */
export interface HttpRequest extends Admitted {
  readonly version: EnvironmentVersion;
}

/** An answer of plain HTTP. */
export interface HttpReply {
  readonly status: number;
  readonly body: unknown;
}

/** The protocol over plain HTTP. */
export class HttpRoutes {
  readonly #options: HttpRoutesOptions;
  readonly #registry: Registry;

  constructor(options: HttpRoutesOptions, registry: Registry) {
    this.#options = options;
    this.#registry = registry;
  }

  async answer(request: IncomingMessage, asked: HttpRequest): Promise<HttpReply> {
    try {
      return await this.#route(request, asked);
    } catch (error) {
      return this.#failed(error);
    }
  }

  async #route(request: IncomingMessage, asked: HttpRequest): Promise<HttpReply> {
    const { version, path } = asked;
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
        return ok(await this.#stateOf(asked));
      case "GET /list_environments":
        return ok([version.name]);
      case "POST /reset":
        return ok(await this.#reset(await this.#json(request), asked));
      case "POST /step":
        return ok(await this.#step(await this.#json(request), asked));
      case "POST /mcp":
        return ok(await this.#rpc(request, asked));
      default:
        return this.#taskApi(request, asked);
    }
  }

  async #taskApi(request: IncomingMessage, { version, caller, path }: HttpRequest): Promise<HttpReply> {
    const [, name = "", route = "", ...more] = path.split("/");
    const isKnown = (taskRoutes as readonly string[]).includes(route) && more.length === 0;
    const isMethod = request.method === (route === "splits" ? "GET" : "POST");
    if (!isKnown || !isMethod || name.toLowerCase() !== version.name.toLowerCase()) return { status: 404, body: { detail: "Not Found" } };
    const body = route === "splits" ? null : await this.#json(request);
    const list = await this.#options.tasks.list(`${version.name}@${version.version}`, caller);
    return ok(answerTasks(route as TaskRoute, body, list, version.name));
  }

  /** An episode that is named goes on with later requests of that name; one without a name ends with its request, as in the reference. */
  async #reset(body: unknown, { version, caller }: HttpRequest): Promise<unknown> {
    const data = parseReset(body);
    if (data.episode_id == null) return this.#registry.once(version, caller, (session) => session.reset(data));
    const { session, isNew } = await this.#registry.openEpisode(version, caller, data.episode_id);
    try {
      return await session.reset(data);
    } catch (error) {
      // Another server may have begun the episode in the meantime.
      if (isNew) await this.#registry.endUnused(session);
      throw error;
    }
  }

  async #step(body: unknown, asked: HttpRequest): Promise<unknown> {
    const { action, episode_id: episodeId } = parse(stepBody, body);
    const parsed = parseAction(action);
    if (episodeId != null) return (await this.#episode(episodeId, asked)).step(parsed);
    return this.#registry.once(asked.version, asked.caller, (session) => session.step(parsed));
  }

  async #stateOf(asked: HttpRequest): Promise<unknown> {
    const episodeId = asked.query.get("episode_id");
    if (episodeId === null) return { episode_id: null, step_count: 0, env: asked.ref };
    return (await this.#episode(episodeId, asked)).state();
  }

  async #episode(episodeId: string, { version, caller }: HttpRequest): Promise<OpenEnvSession> {
    const session = await this.#registry.findEpisode(version, caller, episodeId);
    if (session !== null) return session;
    throw new PlatformError("session.not_found", `there is no episode '${episodeId}'; reset with this episode_id first`);
  }

  async #rpc(request: IncomingMessage, asked: HttpRequest): Promise<unknown> {
    const message = tryMessage(await this.#text(request));
    return message === undefined ? parseFailure() : answerMcp(message, mcpSessions(this.#registry, asked.caller, asked.version));
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
    const value = text.trim() === "" ? {} : tryMessage(text);
    if (isObject(value)) return value;
    throw new InvalidMessage([{ type: "json_invalid", loc: ["body"], msg: "the body must be a JSON object", input: null }]);
  }

  async #text(request: IncomingMessage): Promise<string> {
    const { bodyTimeoutMs: timeoutMs, maxBodyBytes: maxBytes } = this.#options;
    return (await readBody(request, { maxBytes, timeoutMs })).toString("utf8");
  }
}

const stepBody = z.looseObject({ action: z.record(z.string(), z.unknown()), episode_id: z.string().max(255).nullish() });

function ok(body: unknown): HttpReply {
  return { status: 200, body };
}
