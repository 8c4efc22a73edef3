import { once } from "node:events";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import {
  FIRST_INSTANCE,
  type HostRule,
  hostRuleFor,
  instanceRoutes,
  LINK_PROTOCOL,
  PlatformError,
  pathsBelowInstance,
  runnerRoutes,
} from "@aenv/contract";
import { A2aEndpoint } from "../a2a/endpoint.ts";
import { compileEnvironment } from "../compile/environment.ts";
import type { EnvironmentDefinition } from "../definition/definition.ts";
import type { LocalChild, LocalEnvironment } from "../definition/local-child.ts";
import { acceptOnly } from "../http/callers.ts";
import { sendFailure, sendText } from "../http/exchange.ts";
import { failureLog } from "../instances/failure-log.ts";
import { Host, type InstanceSpec } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import type { ToolSurface } from "../instances/tool-surface.ts";
import { PlatformLink } from "../link/link.ts";
import { McpEndpoint } from "../mcp/endpoint.ts";
import { LinkModels } from "../models/link-models.ts";
import type { ModelCalls } from "../models/model.ts";
import { answerControl, isControl } from "./control.ts";
import { LocalChildren } from "./local-children.ts";
import { SandboxTracer } from "./trace.ts";
import { answerTrainer } from "./trainer-api.ts";
import { warmUp } from "./warm-up.ts";

export interface ServeOptions {
  readonly name?: string;
  readonly version?: string;
  /** Loopback by default; a sandbox behind a gateway listens on 0.0.0.0. */
  readonly host?: string;
  /** 8081 by default, as the original's clients expect; 0 takes any free port. */
  readonly port?: number;
  /** A unix socket instead of host and port. */
  readonly socketPath?: string;
  /** A listening server, instead of host, port and socket. `close` closes it too. */
  readonly server?: Server;
  /** Host names that a server on loopback accepts besides those of loopback. */
  readonly allowedHosts?: readonly string[];
  /** Refuses connections from programs of the same machine or, in a sandbox, of the same sandbox: those of agents, if they run there. */
  readonly refusesOwnMachine?: boolean;
  /** The SHA-256 digest of a key in hex: only connections that begin with the key are taken. For a platform that connects from inside. */
  readonly callerDigest?: string;
  /** The first instance; null to start without one. */
  readonly first?: InstanceSpec | null;
  readonly maxBodyBytes?: number;
  /** The response to a tool call becomes a stream after this time. */
  readonly streamAfterMs?: number;
  /** Interval of the comments that keep an idle stream open. */
  readonly pingMs?: number;
  readonly maxSessions?: number;
  /** How long running calls may take to finish after `close`. */
  readonly graceMs?: number;
  /** OTLP/HTTP endpoint for the spans of traced calls; OTEL_EXPORTER_OTLP_ENDPOINT by default. */
  readonly otlpUrl?: string;
  /** False answers all MCP requests through the MCP SDK; for comparison only. */
  readonly useFastPath?: boolean;
  /** Runs a dummy environment once, so that the first call is as fast as later ones; for a process that is started in advance. */
  readonly warmsUp?: boolean;
  /** Answers `GET /` with a page for browsers; 404 by default. */
  readonly homePage?: (request: IncomingMessage, response: ServerResponse, host: Host) => Promise<void>;
  /** Lets the server of a platform connect, so that the environment's code can open sandboxes. Only for processes that no agent reaches. */
  readonly acceptsPlatform?: boolean;
  /** Environments of which each episode has an instance of its own, without a platform. */
  readonly uses?: readonly LocalChild[];
  /** Answers the calls of models by the environment's code. */
  readonly models?: ModelCalls;
  /** Writes exceptions of the environment's code, with their stacks; to standard error by default. */
  readonly writeLog?: (text: string) => void;
}

const MEBIBYTE = 1024 * 1024;
/** The paths of the agent API, where an escaped character makes another path. */
const isAgentPath = (() => {
  const paths = pathsBelowInstance("agent");
  return (path: string) => paths.some((one) => one === path || (one.endsWith("/*") && path.startsWith(one.slice(0, -1))));
})();

// An `import` would evaluate every export of node:http, and its WebSocket loads all of undici: a third of the start-up time.
const { createServer } = process.getBuiltinModule("node:http");

/** A served environment. `await using` closes it. */
export interface Served extends AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly host: Host;
  /** Refuses new calls, lets running ones finish, then ends every instance. */
  close(): Promise<void>;
}

/**
 * Serves an environment: tools to agents over MCP, everything else to trainers over HTTP.
 *
 * @example
 * await using served = await serve(environment, { name: "shop", port: 0 });
 */
export async function serve(definition: EnvironmentDefinition, options: ServeOptions = {}): Promise<Served> {
  const environment = await compileEnvironment(definition, { name: options.name ?? "aenv-server", version: options.version ?? "0.1.0" });
  const link = options.acceptsPlatform === true ? new PlatformLink() : null;
  const models = options.models ?? (link === null ? null : new LinkModels(link));
  const local = options.uses === undefined || options.uses.length === 0 ? null : await openChildren(options.uses, options);
  const host = new Host(environment, failureLog(options.writeLog), link, models, local ?? undefined);
  if (options.first !== null) {
    const first = host.create({ environment_variables: ownVariables(), ...options.first, id: FIRST_INSTANCE });
    await first.catch(async (error: unknown) => {
      await local?.end();
      throw error;
    });
  }
  if (options.warmsUp === true) await warmUp((other) => serve(other, { first: null, port: 0, otlpUrl: "" }));
  const sandbox = new Sandbox(host, options, async () => local?.end());
  try {
    return await sandbox.listen();
  } catch (error) {
    await host.close("the server did not start");
    await local?.end();
    throw error;
  }
}

/** Serves the environments of children in this process, each at a socket of its own. */
function openChildren(uses: readonly LocalChild[], { models, writeLog }: ServeOptions): Promise<LocalChildren> {
  return LocalChildren.open(uses, ({ name, version, definition, uses: below }: LocalEnvironment, socketPath) =>
    serve(definition, {
      name,
      version,
      first: null,
      socketPath,
      ...(below !== undefined && { uses: below }),
      ...(models !== undefined && { models }),
      ...(writeLog !== undefined && { writeLog }),
    }),
  );
}

class Sandbox {
  readonly #host: Host;
  readonly #options: ServeOptions;
  readonly #onClosed: () => Promise<void>;
  readonly #server: Server;
  readonly #mcp: McpEndpoint;
  readonly #a2a: A2aEndpoint;
  readonly #hostRule: HostRule;
  readonly #tracer: SandboxTracer | null;
  readonly #maxBodyBytes: number;
  #isDraining = false;
  #answering = 0;
  #onIdle: (() => void) | undefined;

  constructor(host: Host, options: ServeOptions, onClosed: () => Promise<void>) {
    this.#host = host;
    this.#onClosed = onClosed;
    this.#options = options;
    this.#maxBodyBytes = options.maxBodyBytes ?? 16 * MEBIBYTE;
    this.#mcp = new McpEndpoint(host.environment, {
      maxBodyBytes: this.#maxBodyBytes,
      streamAfterMs: options.streamAfterMs ?? 1_000,
      pingMs: options.pingMs ?? 15_000,
      maxSessions: options.maxSessions ?? 256,
      useFastPath: options.useFastPath ?? true,
    });
    this.#a2a = new A2aEndpoint(host.environment, { maxBodyBytes: this.#maxBodyBytes, pingMs: options.pingMs ?? 15_000 });
    host.onEnd((id) => this.#mcp.forget(id));
    this.#hostRule = hostRuleFor(options.host ?? "127.0.0.1", options.allowedHosts ?? []);
    const { otlpUrl = process.env.OTEL_EXPORTER_OTLP_ENDPOINT } = options;
    this.#tracer = otlpUrl === undefined || otlpUrl === "" ? null : new SandboxTracer(otlpUrl, host.environment);
    this.#server = options.server ?? createServer();
    if (options.callerDigest !== undefined) acceptOnly(this.#server, { kind: "key", digest: options.callerDigest });
    else if (options.refusesOwnMachine === true) acceptOnly(this.#server, { kind: "outside" });
    this.#server.on("request", (request, response) => this.#onRequest(request, response));
    if (host.link !== null) this.#server.on("upgrade", (request, socket) => acceptLink(host, request, socket as Socket));
    // Clients keep connections open longer than Node's default of five seconds, and lose a request if the server closes first.
    this.#server.keepAliveTimeout = 75_000;
  }

  async listen(): Promise<Served> {
    const { host = "127.0.0.1", port = 8081, socketPath } = this.#options;
    if (!this.#server.listening) {
      this.#server.listen(socketPath === undefined ? { host, port } : { path: socketPath });
      try {
        await once(this.#server, "listening");
      } catch (error) {
        throw cannotListen(error, socketPath ?? `${host}:${port}`);
      }
    }
    const address = this.#server.address() as AddressInfo | string;
    const boundPort = typeof address === "string" ? 0 : address.port;
    const close = memoize(() => this.#close());
    return {
      url: typeof address === "string" ? `unix:${address}` : `http://${host.includes(":") ? `[${host}]` : host}:${boundPort}`,
      port: boundPort,
      host: this.#host,
      close,
      [Symbol.asyncDispose]: close,
    };
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    this.#answering++;
    response.once("close", () => {
      this.#answering--;
      if (this.#answering === 0) this.#onIdle?.();
    });
    this.#tracer?.trace(request, response);
    this.#answer(request, response).catch((error: unknown) => {
      this.#host.log(`${request.method} ${request.url}`, error);
      sendFailure(response, error);
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#hostRule.check(request.headers, request.rawHeaders);
    if (this.#isDraining) {
      response.setHeader("connection", "close");
      throw new PlatformError("server.draining", "this server is shutting down; try another server, or try again later");
    }
    const url = request.url ?? "/";
    const at = url.indexOf("?");
    const fullPath = at < 0 ? url : url.slice(0, at);
    const query = at < 0 ? "" : url.slice(at + 1);
    if (fullPath === "/" && request.method === "GET" && this.#options.homePage !== undefined)
      return this.#options.homePage(request, response, this.#host);
    if (!fullPath.startsWith("/env-instance")) return this.#visit(FIRST_INSTANCE, "", fullPath, query, request, response);

    const segments = segmentsOf(fullPath);
    if (segments === null) return sendText(response, 404, "Not Found");
    if (isControl(segments)) return answerControl({ request, response, segments }, this.#host, this.#maxBodyBytes);
    const below = fullPath.slice(fullPath.indexOf("/", "/env-instance/".length));
    return this.#visit(segments[1] as string, fullPath.slice(0, -below.length), below, query, request, response);
  }

  async #visit(id: string, prefix: string, path: string, query: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const instance = this.#host.get(id);
    const role = roleIn(path, instance);
    if (role !== null) return this.#mcp.answer(role, request, response);
    const trimmed = path.endsWith("/") ? path.slice(0, -1) : path;
    if (isAgentPath(trimmed)) {
      if (trimmed === instanceRoutes.mcp.path) return this.#mcp.answer(instance, request, response);
      // Its tasks and its card would be the same for all roles.
      if (instance.roles !== null)
        throw new PlatformError(
          "instance.unsupported",
          `this environment has the roles ${instance.roles.join(", ")}, whose agents use MCP`,
        );
      return this.#a2a.answer({ request, response, instance, path: trimmed, query: new URLSearchParams(query), prefix });
    }
    return answerTrainer({ request, response, instance, path, query: new URLSearchParams(query) }, this.#host, this.#maxBodyBytes);
  }

  async #close(): Promise<void> {
    this.#isDraining = true;
    const closed = once(this.#server, "close");
    this.#server.close();
    this.#server.closeIdleConnections();
    // Streams that only wait for messages would never end.
    this.#mcp.close();
    for (const instance of this.#host.list()) instance.endWaits();
    const isIdle = await this.#untilIdle(this.#options.graceMs ?? 10_000);
    if (!isIdle) {
      this.#host.abort("the server is shutting down");
      await this.#untilIdle(1_000);
    }
    await this.#host.close("the server is shutting down");
    await this.#tracer?.flush();
    await this.#onClosed();
    this.#host.link?.close();
    this.#server.closeAllConnections();
    await closed;
  }

  /** True once every response is sent; false after the time limit. */
  #untilIdle(limitMs: number): Promise<boolean> {
    if (this.#answering === 0) return Promise.resolve(true);
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), limitMs);
      this.#onIdle = () => {
        clearTimeout(timer);
        resolve(true);
      };
    });
  }
}

/** The role whose tools are at this path; null if it is another path. */
function roleIn(path: string, instance: Instance): ToolSurface | null {
  if (!path.startsWith("/role/")) return null;
  const [, , role = "", below, ...more] = path.split("/");
  if (below !== "mcp" || more.some((one) => one !== "")) return null;
  return instance.play.surfaceOf(role);
}

function acceptLink({ link }: Host, { url, headers }: IncomingMessage, socket: Socket): void {
  if (url === runnerRoutes.link.path && headers.upgrade === LINK_PROTOCOL) link?.accept(socket);
  else socket.end("HTTP/1.1 404 Not Found\r\nconnection: close\r\n\r\n");
}

/** The decoded segments of a path below `/env-instance`; null if the path is another or badly escaped. */
function segmentsOf(path: string): string[] | null {
  const [, ...segments] = path.split("/");
  if (segments[0] !== "env-instance") return null;
  if (segments.at(-1) === "") segments.pop();
  try {
    return path.includes("%") ? segments.map(decodeURIComponent) : segments;
  } catch {
    return null;
  }
}

function memoize<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => (running ??= work());
}

function cannotListen(error: unknown, where: string): PlatformError {
  const code = (error as NodeJS.ErrnoException).code;
  const why = code === "EADDRINUSE" ? "another process listens there already; choose another port" : (error as Error).message;
  return new PlatformError("internal", `cannot listen on ${where}: ${why}`, { cause: error, details: { code } });
}

/** The first instance of a dedicated sandbox gets its variables from the process environment, as in a container. */
function ownVariables(): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [key, value] of Object.entries(process.env)) if (value !== undefined) variables[key] = value;
  return variables;
}
