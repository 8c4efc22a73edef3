import type { IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { checkSingleHost, type HostRule, isPlatformError, PlatformError } from "@aenv/contract";
import { Pool } from "undici";
import type { GatewayRequest } from "../gateway/admission.ts";
import type { Client } from "../gateway/call.ts";
import { OPENENV, PORT_LINKS } from "../gateway/destination.ts";
import type { ServerRoutes } from "../gateway/gateway.ts";
import { isEndToEnd } from "../gateway/headers.ts";
import type { LinkHosts } from "../gateway/ports/link-hosts.ts";
import { relay } from "../gateway/relay.ts";
import { LookAhead, stallLimits } from "../gateway/request-body.ts";
import { refusalBytes, sendRefusal } from "../gateway/responses.ts";
import { endConnection } from "../http/drain.ts";

/** Names the client to the server. Only workers can connect to the socket on which the server believes it. */
const CLIENT = "x-aenv-client";

/** The client that a worker names; the header goes no further. */
export function readClient(request: IncomingMessage): Client {
  const { [CLIENT]: client, ...headers } = request.headers;
  request.headers = headers;
  return { remoteAddress: typeof client === "string" && client !== "" ? client : undefined };
}

/** Passes on what only the server can serve: sessions of OpenEnv are in its memory, and only it can open ports inside sandboxes. */
export class RoutesOfServer implements ServerRoutes {
  readonly #socketPath: string;
  readonly #hostRule: HostRule;
  readonly #linkHosts: LinkHosts;
  readonly #pool: Pool;
  readonly #lookAhead = new LookAhead();

  constructor(socketPath: string, hostRule: HostRule, linkHosts: LinkHosts) {
    this.#socketPath = socketPath;
    this.#hostRule = hostRule;
    this.#linkHosts = linkHosts;
    // No timeouts: the server sets them.
    this.#pool = new Pool("http://localhost", { connect: { socketPath }, headersTimeout: 0, bodyTimeout: 0 });
  }

  serves({ url = "", headers }: GatewayRequest): boolean {
    return url.startsWith(PORT_LINKS) || url.startsWith(OPENENV) || this.#linkHosts.tokenIn(headers.host) !== null;
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      // Here, because the headers that are passed on have each name once.
      if (this.#linkHosts.tokenIn(request.headers.host) !== null) checkSingleHost(request.rawHeaders);
      else this.#hostRule.check(request.headers, request.rawHeaders);
      const options = { pool: this.#pool, path: request.url ?? "/", headers: headersOf(request), maxBodyBytes: null };
      const end = await relay(request, response, { ...options, lookAhead: this.#lookAhead, stall: stallLimits });
      if (response.headersSent || end.kind === "left") return;
      throw new PlatformError("server.draining", "the server ended before it answered; try again in a moment");
    } catch (error) {
      sendRefusal(response, refusalOf(error));
    }
  }

  upgrade(request: IncomingMessage, client: Duplex, first: Buffer): void {
    const server = connect(this.#socketPath);
    let hasBegun = false;
    const head = [`${request.method} ${request.url} HTTP/1.1`];
    for (let at = 0; at < request.rawHeaders.length; at += 2) {
      const [name = "", value = ""] = request.rawHeaders.slice(at, at + 2);
      if (name.toLowerCase() !== CLIENT) head.push(`${name}: ${value}`);
    }
    head.push(`${CLIENT}: ${request.socket.remoteAddress ?? ""}`, "", "");
    server.write(head.join("\r\n"), "latin1");
    server.write(first);
    server.once("data", () => {
      hasBegun = true;
    });
    // When one side fails, the other is closed. The end of one side is passed on by the pipes, after all that it has sent.
    client.on("error", () => server.destroy());
    client.once("close", () => server.destroy());
    server.on("error", () => {
      if (hasBegun) client.destroy();
      else
        endConnection(client, refusalBytes(new PlatformError("server.draining", "the server has ended; try again in a moment"), "close"));
    });
    client.pipe(server).pipe(client);
  }

  close(): Promise<void> {
    return this.#pool.close();
  }
}

function headersOf(request: IncomingMessage): Record<string, string | string[]> {
  const named = (request.headers.connection ?? "").toLowerCase().split(/[\s,]+/);
  const kept: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(request.headers)) {
    // The worker has answered `expect` itself.
    if (value !== undefined && isEndToEnd(name) && name !== "expect" && !named.includes(name)) kept[name] = value;
  }
  return { ...kept, [CLIENT]: request.socket.remoteAddress ?? "" };
}

function refusalOf(error: unknown): PlatformError {
  return isPlatformError(error) ? error : new PlatformError("internal", "an internal error of a worker", { cause: error });
}
