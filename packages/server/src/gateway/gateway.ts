import type { IncomingMessage, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { instanceRoutes, PlatformError } from "@aenv/contract";
import { endConnection, endResponse } from "../http/drain.ts";
import type { HttpLimits } from "../http/limits.ts";
import { asksForWebSocket } from "../http/upgrade.ts";
import type { SandboxClients } from "../sandboxes/client.ts";
import { tagSession } from "../services/sessions.ts";
import { Admission, type AdmissionOptions, type Admitted, type GatewayRequest, type MaybePromise } from "./admission.ts";
import { Call, type CallWatch, type Client, type GatewayCall } from "./call.ts";
import { OPENENV, PORT_LINKS } from "./destination.ts";
import type { Answer, Dispatched, Forward } from "./fast-path/connection.ts";
import type { ShortRequest } from "./fast-path/head.ts";
import { FastPathServer } from "./fast-path/server.ts";
import { REPLACED, SESSION } from "./headers.ts";
import { lastEvent } from "./last-event.ts";
import { PortProxy, type PortProxyOptions } from "./port-proxy.ts";
import { type HealthAnswer, readProgramHealth } from "./program-health.ts";
import { linkNotFound } from "./refusal.ts";
import { headersForSandbox, relay } from "./relay.ts";
import { LookAhead, type StallLimits } from "./request-body.ts";
import { jsonBytes, refusalBytes, sendJson, sendRefusal } from "./responses.ts";

/** The OpenEnv protocol, below a path of its own. */
export interface OpenEnvRoutes {
  /** The answer to a plain request. Both throw if the caller is refused, and tell `onCaller` who it is. */
  answer(request: IncomingMessage, onCaller: (owner: string) => void): Promise<{ readonly status: number; readonly body: unknown }>;
  /** Serves a WebSocket until it ends. */
  upgrade(request: IncomingMessage, client: Duplex, first: Buffer, onCaller: (owner: string) => void): Promise<void>;
}

/** The server of a worker, which serves what the worker cannot: presigned links and the OpenEnv protocol. */
export interface ServerRoutes {
  serves(request: GatewayRequest): boolean;
  answer(request: IncomingMessage, response: ServerResponse): Promise<void>;
  upgrade(request: IncomingMessage, client: Duplex, first: Buffer): void;
}

export interface GatewayOptions extends AdmissionOptions, CallWatch, PortProxyOptions {
  readonly openenv?: OpenEnvRoutes;
  readonly serverRoutes?: ServerRoutes;
  /** The client of a request that another process passes on; by default, the other end of its connection. */
  readonly clientOf?: (request: IncomingMessage) => Client;
  readonly clients: SandboxClients;
  readonly maxBodyBytes: number | null;
  readonly httpLimits: HttpLimits;
  readonly stall: StallLimits;
}

const HEALTHY = { status: "healthy", message: "MCP Gateway is running" };

/** The data port: forwards each call to the instance that it names. */
export class Gateway {
  readonly server: FastPathServer;
  readonly #options: GatewayOptions;
  readonly #admission: Admission;
  readonly #ports: PortProxy;
  readonly #lookAhead = new LookAhead();

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#admission = new Admission(options);
    this.#ports = new PortProxy(options);
    this.server = new FastPathServer(
      options.httpLimits,
      (request, socket) => this.#dispatch(request, socket),
      (request, response) => void this.#answer(request, response),
      asksForWebSocket,
    );
    this.server.on("upgrade", (request, client, first) => void this.#upgrade(request, client, first));
  }

  drain(): void {
    this.#admission.drain();
  }

  /** The fast path. */
  #dispatch(request: ShortRequest, socket: Socket): MaybePromise<Dispatched> {
    const { maxBodyBytes } = this.#options;
    // Calls through presigned links are not short tool calls, which the fast path is for.
    if (this.#isLink(request) || this.#isOpenEnv(request) || this.#isForServer(request) || isForCard(request.url)) return null;
    if (maxBodyBytes !== null && request.end - request.bodyAt > maxBodyBytes) return null;
    const call = new Call(this.#options, request.headers, socket);
    const refuse = (error: unknown): Answer => {
      const failure = call.refuse(error);
      return (connection) => refusalBytes(failure, connection);
    };
    try {
      const admitted = this.#admission.admit(call, request);
      if (!(admitted instanceof Promise)) return this.#open(admitted, call, request);
      return admitted.then((found) => this.#open(found, call, request)).catch(refuse);
    } catch (error) {
      return refuse(error);
    }
  }

  #open(admitted: Admitted | null, call: Call, request: ShortRequest): MaybePromise<Forward | Answer> {
    if (admitted === null) {
      call.end(200, "refused");
      return (connection) => jsonBytes(200, HEALTHY, connection);
    }
    const { sandboxId, address } = admitted.target;
    call.begin(admitted.target);
    const health = this.#programHealth(admitted, call);
    if (health !== null)
      return health.then(
        ({ status, body }) =>
          (connection) =>
            jsonBytes(status, body, connection),
      );
    return {
      connections: this.#options.clients.connections(sandboxId, address),
      head: headFor(request, admitted, call.headers),
      sessionTag: admitted.session?.tag,
      onEnd: ({ status, kind, error }) => call.end(status, kind, error),
      onLost: async (error) => {
        const failure = call.refuse(await this.#admission.explainLoss(admitted, error).catch((reason: unknown) => reason));
        return (connection) => refusalBytes(failure, connection);
      },
      lastEvent: (body, error) => this.#lastEvent(admitted, body, error),
    };
  }

  #cardHeaders(admitted: Admitted, { headers: { host } }: IncomingMessage): Readonly<Record<string, string>> {
    return isForCard(admitted.destination.path) ? this.#admission.cardHeaders(admitted, host) : {};
  }

  #lastEvent(admitted: Admitted, body: Buffer, error: Error): Promise<string | null> {
    return this.#admission.explainLoss(admitted, error).then(
      (failure) => lastEvent(body, failure, admitted.destination.path === instanceRoutes.a2a.path),
      () => null,
    );
  }

  /** The regular path. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (this.#isForServer(request)) return this.#options.serverRoutes?.answer(request, response);
    const call = this.#callOf(request);
    try {
      const { openenv } = this.#options;
      if (openenv !== undefined && this.#isOpenEnv(request)) return await this.#answerOpenEnv(openenv, request, response, call);
      const admitted = await this.#admission.admit(call, request);
      if (admitted === null) {
        sendJson(response, 200, HEALTHY);
        return call.end(200, "refused");
      }
      const ownUrl = this.#ports.ownUrl(admitted, request);
      if (ownUrl !== null) {
        response.writeHead(307, { location: ownUrl, "cache-control": "no-store", "content-length": 0 });
        endResponse(response, "");
        return call.end(307, "refused");
      }
      call.begin(admitted.target);
      const health = await this.#programHealth(admitted, call);
      if (health === null) await this.#relay(admitted, call, request, response);
      else sendJson(response, health.status, health.body);
    } catch (error) {
      sendRefusal(response, call.refuse(error));
    }
  }

  async #relay(admitted: Admitted, call: Call, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { clients, maxBodyBytes, stall } = this.#options;
    const { headers } = call;
    const { target, link, path, session } = admitted;
    const to =
      link === undefined
        ? {
            pool: clients.pool(target.sandboxId, target.address),
            headers: withSession(headersForSandbox(request, { ...headers, ...this.#cardHeaders(admitted, request) }), session),
            ...(session !== undefined && { rewrite: (answered: Headers) => tagged(answered, session.tag) }),
            lastEvent: (body: Buffer, error: Error) => this.#lastEvent(admitted, body, error),
          }
        : this.#ports.forRequest({ admitted, link, request, headers });
    const end = await relay(request, response, { ...to, path, maxBodyBytes, lookAhead: this.#lookAhead, stall });
    if (end.kind === "too_large") throw new PlatformError("request.too_large", `the request body is larger than ${maxBodyBytes} bytes`);
    if (!response.headersSent) {
      if (end.kind === "stalled")
        throw new PlatformError("request.timeout", `the sandbox has not read any of the request for ${stall.giveUpAfterMs} ms`);
      if (end.kind === "lost") throw await this.#admission.explainLoss(admitted, end.error);
      if (end.kind === "expired") throw linkNotFound();
    }
    call.end(response.statusCode, end.kind, end.kind === "lost" ? end.error : undefined);
  }

  /** The health of an instance that is a program, which may have no such route; null for other calls. Without a server, those are refused. */
  #programHealth({ target, destination, link }: Admitted, call: Call): Promise<HealthAnswer> | null {
    const program = target.row.slot?.program;
    if (program === undefined || link !== undefined) return null;
    const { instanceId, sandboxId, address } = target;
    if (destination.path !== instanceRoutes.health.path) {
      if (program.hasServer) return null;
      throw new PlatformError(
        "instance.unsupported",
        `instance '${instanceId}' has no server, so no tools and no rewards: its environment is an image without deployConfig.port; use commands, files and ports`,
      );
    }
    return readProgramHealth(this.#options.clients.pool(sandboxId, address), program, instanceId).then((answer) => {
      call.end(answer.status, "answered");
      return answer;
    });
  }

  #callOf(request: IncomingMessage): Call {
    // First: it may remove the header that names the client.
    const client = this.#options.clientOf?.(request) ?? request.socket;
    return new Call(this.#options, request.headers, client);
  }

  #isForServer(request: GatewayRequest): boolean {
    return this.#options.serverRoutes?.serves(request) ?? false;
  }

  #isLink({ url = "", headers }: GatewayRequest): boolean {
    return url.startsWith(PORT_LINKS) || this.#options.linkHosts.tokenIn(headers.host) !== null;
  }

  #isOpenEnv(request: GatewayRequest): boolean {
    const { openenv } = this.#options;
    return openenv !== undefined && (request.url ?? "").startsWith(OPENENV) && !this.#isLink(request);
  }

  async #answerOpenEnv(openenv: OpenEnvRoutes, request: IncomingMessage, response: ServerResponse, call: Call): Promise<void> {
    this.#options.hostRule.check(request.headers, request.rawHeaders);
    this.#options.hostRule.checkPage(request, "none");
    call.destination = { api: "openenv" };
    const { status, body } = await openenv.answer(request, (owner) => {
      call.owner = owner;
    });
    sendJson(response, status, body);
    call.end(status, "answered");
  }

  async #upgradeOpenEnv(openenv: OpenEnvRoutes, request: IncomingMessage, client: Duplex, first: Buffer, call: Call): Promise<void> {
    this.#options.hostRule.check(request.headers, request.rawHeaders);
    this.#options.hostRule.checkPage({ headers: request.headers }, "none");
    call.destination = { api: "openenv" };
    await openenv.upgrade(request, client, first, (owner) => {
      call.owner = owner;
    });
    call.end(101, "answered");
  }

  /** Carries a WebSocket: through presigned links, or of the OpenEnv protocol. */
  async #upgrade(request: IncomingMessage, client: Duplex, first: Buffer): Promise<void> {
    const { serverRoutes } = this.#options;
    if (serverRoutes !== undefined) return serverRoutes.upgrade(request, client, first);
    const call = this.#callOf(request);
    // A broken connection also emits `close`.
    client.on("error", () => {});
    try {
      const { openenv } = this.#options;
      if (openenv !== undefined && this.#isOpenEnv(request)) return await this.#upgradeOpenEnv(openenv, request, client, first, call);
      const admitted = await this.#admission.admit(call, request);
      if (admitted?.link === undefined) throw linkNotFound();
      call.begin(admitted.target);
      const end = await this.#ports.carry({ admitted, link: admitted.link, request, headers: call.headers }, client, first);
      if (end.status === 0 && end.kind === "lost") throw await this.#admission.explainLoss(admitted, end.error ?? new Error("no answer"));
      if (end.status === 0 && end.kind === "expired") throw linkNotFound();
      client.destroy();
      call.end(end.status, end.kind satisfies GatewayCall["end"], end.error);
    } catch (error) {
      endConnection(client, refusalBytes(call.refuse(error), "close"));
    }
  }
}

/** Whether a client asks for the A2A card, which names the address of the instance. */
function isForCard(url: string): boolean {
  return url.includes(instanceRoutes.agentCard.path);
}

/** The head of the request to the sandbox. `more` are the gateway's own headers. */
function headFor(request: ShortRequest, { path, session }: Admitted, more: Readonly<Record<string, string>>): string {
  let head = `${request.method} ${path} HTTP/1.1\r\nhost: localhost\r\n${request.forSandbox}`;
  for (const name of REPLACED) {
    const value = more[name] ?? (session !== undefined && name === SESSION ? session.id : request.headers[name]);
    if (value != null) head += `${name}: ${value}\r\n`;
  }
  return `${head}\r\n`;
}

type Headers = Record<string, string | string[]>;

/** A service's replica gets the session's id without its tag. */
function withSession(headers: Headers, session: Admitted["session"]): Headers {
  return session?.id == null ? headers : { ...headers, [SESSION]: session.id };
}

function tagged(headers: Headers, tag: string): Headers {
  const { [SESSION]: id } = headers;
  return typeof id === "string" ? { ...headers, [SESSION]: tagSession(tag, id) } : headers;
}
