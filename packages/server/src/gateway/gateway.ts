import { randomUUID } from "node:crypto";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { boxFailure, isPlatformError, PlatformError } from "@aenv/contract";
import type { Access, Caller } from "../access/access.ts";
import type { BoxClients } from "../instances/box-client.ts";
import { maySee } from "../instances/instances.ts";
import type { InstanceRow } from "../instances/row.ts";
import type { Target, Targets } from "../instances/targets.ts";
import { endAnswer } from "../linger.ts";
import type { Tracing } from "../operations/tracing.ts";
import { limitConnections, type Patience, serverOptions } from "../patience.ts";
import { maySee as maySeeService, notFound } from "../services/services.ts";
import type { ServiceTargets } from "../services/targets.ts";
import { type Addressee, readAddressee } from "./address.ts";
import { refusalOf } from "./refusal.ts";
import { headersForBox, type RelayEnd, relay } from "./relay.ts";
import type { VisitorRule } from "./visitors.ts";

export interface GatewayOptions {
  readonly targets: Targets;
  readonly services: ServiceTargets;
  readonly clients: BoxClients;
  readonly access: Access;
  /** An unguessable id is enough to enter, as the original's clients need; off, a token is asked for here too. */
  readonly idsAreKeys: boolean;
  readonly visitors: VisitorRule;
  readonly maxBodyBytes: number | null;
  readonly patience: Patience;
  readonly tracing: Tracing;
  /** Who is used is not idle, */
  readonly onUse: (row: InstanceRow) => void;
  /** for as long as the call takes. */
  readonly onUsed?: (row: InstanceRow) => void;
  readonly onCall: (call: GatewayCall) => void;
}

export interface GatewayCall {
  readonly requestId: string;
  readonly instanceId: string | null;
  readonly door: Addressee["door"] | null;
  readonly status: number;
  readonly durationMs: number;
  readonly end: RelayEnd["kind"] | "refused";
}

/** The data port: brings every call to the instance it names, and nowhere else. */
export class Gateway {
  readonly server: Server;
  readonly #options: GatewayOptions;
  #isDraining = false;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.server = createServer(serverOptions(options.patience), (request, response) => void this.#answer(request, response));
    limitConnections(this.server, options.patience);
  }

  drain(): void {
    this.#isDraining = true;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const began = performance.now();
    const requestId = requestIdOf(request);
    let addressee: Addressee | null = null;
    let instanceId: string | null = null;
    let used: InstanceRow | null = null;
    let end: GatewayCall["end"] = "refused";
    const traced = this.#options.tracing.start("gateway", request.headers);
    try {
      this.#options.visitors.demand(request.headers);
      demandPlainHttp(request);
      const url = request.url ?? "/";
      const at = url.indexOf("?");
      const path = at < 0 ? url : url.slice(0, at);
      if (path === "/health" && !namesInstance(request))
        return sendJson(response, 200, { status: "healthy", message: "MCP Gateway is running" });
      if (this.#isDraining) throw new PlatformError("server.draining", "this server is shutting down; ask another, or later");
      addressee = readAddressee(path, request.headers);
      const target = await this.#admit(addressee, request);
      instanceId = target.instanceId;
      used = target.row;
      this.#options.onUse(used);
      end = await this.#relay(
        target,
        addressee,
        at < 0 ? "" : url.slice(at),
        { "x-request-id": requestId, ...traced.headers },
        request,
        response,
      );
    } catch (error) {
      refuse(response, error);
    } finally {
      if (used !== null) this.#options.onUsed?.(used);
      traced.end({ "http.response.status_code": response.statusCode, "aenv.door": addressee?.door ?? "none" }, response.statusCode >= 500);
      this.#options.onCall({
        requestId,
        instanceId,
        door: addressee?.door ?? null,
        status: response.statusCode,
        durationMs: performance.now() - began,
        end,
      });
    }
  }

  /** The instance behind the door, if the caller may open it. */
  async #admit(addressee: Addressee, request: IncomingMessage): Promise<Ready> {
    const { targets, access, idsAreKeys } = this.#options;
    if (addressee.door === "service") return this.#admitToService(addressee, request);
    const target =
      addressee.door === "agent"
        ? await targets.findByAgentKey(addressee.agentKey)
        : (targets.peek(addressee.instanceId) ?? (await targets.find(addressee.instanceId)));
    const { authorization } = request.headers;
    if (addressee.door === "trainer" && access.isOn && (authorization !== undefined || !idsAreKeys)) {
      const caller = await access.identify(authorization);
      this.#demandRole(caller, addressee);
      if (target.kind !== "unknown" && !maySee(target.row, caller)) throw refusalOf({ kind: "unknown" }, addressee);
    }
    if (target.kind === "ready") return target;
    throw refusalOf(target, addressee);
  }

  /** A replica of the service. Its name may be guessed, so where tokens are in use one is always asked for. */
  async #admitToService(addressee: Extract<Addressee, { door: "service" }>, request: IncomingMessage): Promise<Ready> {
    const { services, access } = this.#options;
    const caller = await access.identify(request.headers.authorization);
    this.#demandRole(caller, addressee);
    const row = await services.get(addressee.serviceId);
    if (!maySeeService(row, caller)) throw notFound(addressee.serviceId);
    return services.pick(row, sessionOf(request.headers));
  }

  /** Tools are all that an agent's token opens, whichever way it comes. */
  #demandRole(caller: Caller, { path }: Addressee): void {
    this.#options.access.demand(caller, "trainer", "publisher", ...(path === "/mcp" ? (["agent"] as const) : []));
  }

  async #relay(
    target: Ready,
    addressee: Addressee,
    query: string,
    headers: Readonly<Record<string, string>>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<RelayEnd["kind"]> {
    const { clients, targets, services, maxBodyBytes } = this.#options;
    const onHeaders = (answered: IncomingHttpHeaders) => {
      const session = sessionOf(answered);
      if (session !== undefined) services.noteSession(session, target.instanceId);
    };
    const end = await relay(request, response, {
      pool: clients.pool(target.boxId, target.address),
      path: `${target.prefix}${addressee.path}${query}`,
      headers: headersForBox(request, headers),
      maxBodyBytes,
      ...(addressee.door === "service" && { onHeaders }),
    });
    if (end.kind === "too_large") throw new PlatformError("request.too_large", `the request body is larger than ${maxBodyBytes} bytes`);
    if (end.kind === "lost" && !response.headersSent) {
      // Memory may be behind: another replica may have ended the instance, or its box may just have died.
      const now = await targets.find(target.instanceId);
      if (now.kind !== "ready") throw refusalOf(now, addressee);
      // Where the box is and how it is spoken to is nobody else's business.
      throw new PlatformError("sandbox.lost", "Failed to forward request to MCP server: the instance's box does not answer", {
        cause: end.error,
      });
    }
    return end.kind;
  }
}

type Ready = Extract<Target, { kind: "ready" }>;

function sessionOf(headers: IncomingHttpHeaders): string | undefined {
  const value = headers["mcp-session-id"];
  return typeof value === "string" ? value : undefined;
}

function refuse(response: ServerResponse, error: unknown): void {
  const failure = isPlatformError(error) ? error : new PlatformError("internal", "a fault of ours; the log says more");
  if (response.headersSent || response.destroyed) return void response.destroy();
  if (failure.retryable) response.setHeader("retry-after", String(failure.details.retryAfterSeconds ?? 1));
  sendJson(response, failure.status, boxFailure(failure));
}

/** Whoever asks for a WebSocket would wait in vain for one; other offers to upgrade, such as HTTP/2, may be passed over. */
function demandPlainHttp({ headers }: IncomingMessage): void {
  if (headers.upgrade?.toLowerCase() !== "websocket") return;
  throw new PlatformError("request.invalid", "WebSocket is not spoken here; use MCP's Streamable HTTP at /mcp");
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  endAnswer(response, text);
}

function namesInstance(request: IncomingMessage): boolean {
  return request.headers["aenvcore-mcpproxy-url"] !== undefined || request.headers["aenvcore-envinstance-id"] !== undefined;
}

function requestIdOf(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  return typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : randomUUID();
}
