import { type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from "node:http";
import { boxFailure, isPlatformError, PlatformError } from "@aenv/contract";
import type { BoxClients } from "../instances/box-client.ts";
import { endAnswer } from "../linger.ts";
import type { Patience } from "../patience.ts";
import type { PortClients } from "../ports/clients.ts";
import { PORT_LINKS } from "./address.ts";
import { Admission, type AdmissionOptions, type MaybePromise, type Way } from "./admission.ts";
import { Call, type CallWatch, type GatewayCall } from "./call.ts";
import { KEPT, type Passage } from "./express/connection.ts";
import type { ShortRequest } from "./express/head.ts";
import { ExpressServer } from "./express/server.ts";
import { isForBox } from "./headers.ts";
import { answerThroughLink, headersForPort } from "./port-headers.ts";
import { linkNotFound } from "./refusal.ts";
import { headersForBox, type RelayOptions, relay } from "./relay.ts";

export interface GatewayOptions extends AdmissionOptions, CallWatch {
  readonly clients: BoxClients;
  readonly ports: PortClients;
  /** Where the data port begins in the URL that clients see; empty if at the root. */
  readonly publicPath: string;
  readonly maxBodyBytes: number | null;
  readonly patience: Patience;
}

const HEALTHY = { status: "healthy", message: "MCP Gateway is running" };

/** The data port: brings every call to the instance it names, and nowhere else. */
export class Gateway {
  readonly server: Server;
  readonly #options: GatewayOptions;
  readonly #admission: Admission;

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#admission = new Admission(options);
    this.server = new ExpressServer(
      options.patience,
      (request) => this.#dispatch(request),
      (request, response) => void this.#answer(request, response),
    );
  }

  drain(): void {
    this.#admission.drain();
  }

  /** The short way. */
  #dispatch(request: ShortRequest): MaybePromise<Passage | Buffer | null> {
    const { maxBodyBytes } = this.#options;
    // Whatever a sandbox's own program may be sent, it is not many short calls.
    if (request.url.startsWith(PORT_LINKS)) return null;
    if (maxBodyBytes !== null && request.end - request.bodyAt > maxBodyBytes) return null;
    const call = new Call(this.#options, request.headers);
    try {
      const way = this.#admission.admit(call, request.url, request.headers);
      if (!(way instanceof Promise)) return this.#open(way, call, request);
      return way.then((found) => this.#open(found, call, request)).catch((error) => refusal(call, error));
    } catch (error) {
      return refusal(call, error);
    }
  }

  #open(way: Way | null, call: Call, request: ShortRequest): Passage | Buffer {
    if (way === null) {
      call.end(200, "refused");
      return plainAnswer(200, HEALTHY, null);
    }
    const { boxId, address } = way.target;
    call.begin(way.target);
    return {
      lines: this.#options.clients.lines(boxId, address),
      head: headFor(request, way.path, call.headers),
      onSession: way.onSession,
      onEnd: ({ status, kind }) => call.end(status, kind),
      onLost: async (error) => refusal(call, await this.#admission.lossOf(way, error).catch((reason: unknown) => reason)),
    };
  }

  /** The long way. */
  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = new Call(this.#options, request.headers);
    let end: GatewayCall["end"] = "refused";
    try {
      const way = await this.#admission.admit(call, request.url ?? "/", request.headers);
      if (way === null) return sendJson(response, 200, HEALTHY);
      call.begin(way.target);
      end = await this.#relay(way, call.headers, request, response);
    } catch (error) {
      refuse(response, asPlatformError(error));
    } finally {
      call.end(response.statusCode, end);
    }
  }

  async #relay(
    way: Way,
    headers: Readonly<Record<string, string>>,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<GatewayCall["end"]> {
    const { maxBodyBytes } = this.#options;
    const to =
      way.link === undefined ? this.#toInstance(way, headers, request) : this.#toPort(way.target.boxId, way.link, headers, request);
    const end = await relay(request, response, { ...to, path: way.path, maxBodyBytes });
    if (end.kind === "too_large") throw new PlatformError("request.too_large", `the request body is larger than ${maxBodyBytes} bytes`);
    if (response.headersSent) return end.kind;
    if (end.kind === "lost") throw await this.#admission.lossOf(way, end.error);
    if (end.kind === "expired") throw linkNotFound();
    return end.kind;
  }

  #toInstance(way: Way, headers: Readonly<Record<string, string>>, request: IncomingMessage): Destination {
    const { boxId, address } = way.target;
    return {
      pool: this.#options.clients.pool(boxId, address),
      headers: headersForBox(request, headers),
      ...(way.onSession !== undefined && { onSession: way.onSession }),
    };
  }

  #toPort(
    boxId: string,
    { port, token, leftMs }: NonNullable<Way["link"]>,
    headers: Readonly<Record<string, string>>,
    request: IncomingMessage,
  ): Destination {
    const { ports, publicPath } = this.#options;
    const place = { prefix: `${publicPath}${PORT_LINKS}${token}`, port };
    return {
      pool: ports.pool({ boxId, port }),
      headers: headersForPort(request, headers, place),
      rewrite: (answered) => answerThroughLink(answered, place),
      limitMs: leftMs,
    };
  }
}

type Destination = Omit<RelayOptions, "path" | "maxBodyBytes">;

function asPlatformError(error: unknown): PlatformError {
  return isPlatformError(error) ? error : new PlatformError("internal", "a fault of ours; the log says more");
}

function refuse(response: ServerResponse, failure: PlatformError): void {
  if (response.headersSent || response.destroyed) return void response.destroy();
  const retryAfter = retryAfterOf(failure);
  if (retryAfter !== null) response.setHeader("retry-after", retryAfter);
  sendJson(response, failure.status, boxFailure(failure));
}

/** What a client on the short way is told instead. */
function refusal(call: Call, error: unknown): Buffer {
  const failure = asPlatformError(error);
  call.end(failure.status, "refused");
  return plainAnswer(failure.status, boxFailure(failure), retryAfterOf(failure));
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

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  const text = JSON.stringify(body);
  response.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  endAnswer(response, text);
}
