import { type IncomingHttpHeaders, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { boxFailure, isPlatformError, PlatformError } from "@aenv/contract";
import type { Access } from "../access/access.ts";
import type { BoxClients } from "../instances/box-client.ts";
import { maySee } from "../instances/instances.ts";
import type { Targets } from "../instances/targets.ts";
import { endAnswer } from "../linger.ts";
import type { Patience } from "../patience.ts";
import { type Addressee, readAddressee } from "./address.ts";
import { Call, type CallWatch, type GatewayCall, type Ready } from "./call.ts";
import { KEPT, type Passage } from "./express/connection.ts";
import type { ShortRequest } from "./express/head.ts";
import { ExpressServer } from "./express/server.ts";
import { isForBox } from "./headers.ts";
import { refusalOf } from "./refusal.ts";
import { headersForBox, relay } from "./relay.ts";
import type { VisitorRule } from "./visitors.ts";

export interface GatewayOptions extends CallWatch {
  readonly targets: Targets;
  readonly clients: BoxClients;
  readonly access: Access;
  /** An unguessable id is enough to enter, as the original's clients need; off, a token is asked for here too. */
  readonly idsAreKeys: boolean;
  readonly visitors: VisitorRule;
  readonly maxBodyBytes: number | null;
  readonly patience: Patience;
}

const HEALTHY = { status: "healthy", message: "MCP Gateway is running" };

/** Where a call that was let in goes. */
interface Way {
  readonly target: Ready;
  readonly addressee: Addressee;
  /** The box's own path. */
  readonly path: string;
}

/** The data port: brings every call to the instance it names, and nowhere else. */
export class Gateway {
  readonly server: Server;
  readonly #options: GatewayOptions;
  #isDraining = false;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.server = new ExpressServer(
      options.patience,
      (request) => this.#dispatch(request),
      (request, response) => void this.#answer(request, response),
    );
  }

  drain(): void {
    this.#isDraining = true;
  }

  /** The short way. */
  async #dispatch(request: ShortRequest): Promise<Passage | Buffer | null> {
    const { clients, maxBodyBytes } = this.#options;
    if (maxBodyBytes !== null && request.end - request.bodyAt > maxBodyBytes) return null;
    const call = new Call(this.#options, request.headers);
    const refuse = (error: unknown) => {
      const failure = asPlatformError(error);
      call.end(failure.status, "refused");
      return plainAnswer(failure.status, boxFailure(failure), retryAfterOf(failure));
    };
    try {
      const way = await this.#admit(call, request.url, request.headers);
      if (way === null) {
        call.end(200, "refused");
        return plainAnswer(200, HEALTHY, null);
      }
      call.begin(way.target);
      return {
        lines: clients.lines(way.target.boxId, way.target.address),
        head: headFor(request, way.path, call.headers),
        onEnd: ({ status, kind }) => call.end(status, kind),
        onLost: (error) => this.#lossOf(way, error).then(refuse, refuse),
      };
    } catch (error) {
      return refuse(error);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = new Call(this.#options, request.headers);
    let end: GatewayCall["end"] = "refused";
    try {
      const way = await this.#admit(call, request.url ?? "/", request.headers);
      if (way === null) return sendJson(response, 200, HEALTHY);
      call.begin(way.target);
      end = await this.#relay(way, call.headers, request, response);
    } catch (error) {
      refuse(response, asPlatformError(error));
    } finally {
      call.end(response.statusCode, end);
    }
  }

  /** Where the call goes, if it may; null for the gateway's own health. */
  async #admit(call: Call, url: string, headers: IncomingHttpHeaders): Promise<Way | null> {
    this.#options.visitors.demand(headers);
    demandPlainHttp(headers);
    const at = url.indexOf("?");
    const path = at < 0 ? url : url.slice(0, at);
    if (path === "/health" && !namesInstance(headers)) return null;
    if (this.#isDraining) throw new PlatformError("server.draining", "this server is shutting down; ask another, or later");
    const addressee = readAddressee(path, headers);
    call.addressee = addressee;
    const target = await this.#find(addressee, headers);
    return { target, addressee, path: `${target.prefix}${addressee.path}${at < 0 ? "" : url.slice(at)}` };
  }

  /** The instance behind the door, if the caller may open it. */
  async #find(addressee: Addressee, { authorization }: IncomingHttpHeaders): Promise<Ready> {
    const { targets, access, idsAreKeys } = this.#options;
    const target =
      addressee.door === "agent"
        ? await targets.findByAgentKey(addressee.agentKey)
        : (targets.peek(addressee.instanceId) ?? (await targets.find(addressee.instanceId)));
    if (addressee.door === "trainer" && access.isOn && (authorization !== undefined || !idsAreKeys)) {
      const caller = await access.identify(authorization);
      // Tools are all that an agent's token opens, whichever way it comes.
      access.demand(caller, "trainer", "publisher", ...(addressee.path === "/mcp" ? (["agent"] as const) : []));
      if (target.kind !== "unknown" && !maySee(target.row, caller)) throw refusalOf({ kind: "unknown" }, addressee);
    }
    if (target.kind === "ready") return target;
    throw refusalOf(target, addressee);
  }

  async #relay(
    way: Way,
    headers: Readonly<Record<string, string>>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<GatewayCall["end"]> {
    const { clients, maxBodyBytes } = this.#options;
    const end = await relay(request, response, {
      pool: clients.pool(way.target.boxId, way.target.address),
      path: way.path,
      headers: headersForBox(request, headers),
      maxBodyBytes,
    });
    if (end.kind === "too_large") throw new PlatformError("request.too_large", `the request body is larger than ${maxBodyBytes} bytes`);
    if (end.kind === "lost" && !response.headersSent) throw await this.#lossOf(way, end.error);
    return end.kind;
  }

  /** Why a box did not answer. Where it is and how it is spoken to is nobody else's business. */
  async #lossOf({ target, addressee }: Way, cause: Error): Promise<PlatformError> {
    // Memory may be behind: another replica may have ended the instance, or its box may just have died.
    const now = await this.#options.targets.find(target.instanceId);
    if (now.kind !== "ready") return refusalOf(now, addressee);
    return new PlatformError("sandbox.lost", "Failed to forward request to MCP server: the instance's box does not answer", { cause });
  }
}

function asPlatformError(error: unknown): PlatformError {
  return isPlatformError(error) ? error : new PlatformError("internal", "a fault of ours; the log says more");
}

function refuse(response: ServerResponse, failure: PlatformError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const retryAfter = retryAfterOf(failure);
  if (retryAfter !== null) response.setHeader("retry-after", retryAfter);
  sendJson(response, failure.status, boxFailure(failure));
}

function retryAfterOf({ retryable, details }: PlatformError): string | null {
  return retryable ? String(details.retryAfterSeconds ?? 1) : null;
}

/** An answer of the gateway's own for a client on the short way. */
function plainAnswer(status: number, content: unknown, retryAfter: string | null): Buffer {
  const body = JSON.stringify(content);
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n`;
  const retry = retryAfter === null ? "" : `retry-after: ${retryAfter}\r\n`;
  return Buffer.from(`${head}${retry}content-length: ${Buffer.byteLength(body)}\r\nconnection: ${KEPT}\r\n\r\n${body}`);
}

function headFor({ method, headers }: ShortRequest, path: string, more: Readonly<Record<string, string>>): string {
  let head = `${method} ${path} HTTP/1.1\r\nhost: localhost\r\n`;
  for (const name in headers) if (isForBox(name) && !Object.hasOwn(more, name)) head += `${name}: ${headers[name]}\r\n`;
  for (const name in more) head += `${name}: ${more[name]}\r\n`;
  return `${head}\r\n`;
}

/** Whoever asks for a WebSocket would wait in vain for one; other offers to upgrade, such as HTTP/2, may be passed over. */
function demandPlainHttp({ upgrade }: IncomingHttpHeaders): void {
  if (upgrade?.toLowerCase() !== "websocket") return;
  throw new PlatformError("request.invalid", "WebSocket is not spoken here; use MCP's Streamable HTTP at /mcp");
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  endAnswer(response, text);
}

function namesInstance(headers: IncomingHttpHeaders): boolean {
  return headers["aenvcore-mcpproxy-url"] !== undefined || headers["aenvcore-envinstance-id"] !== undefined;
}
