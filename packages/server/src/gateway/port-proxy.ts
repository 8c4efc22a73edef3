import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import { OpenCounts } from "../sandboxes/open-counts.ts";
import type { Admitted, OpenLink } from "./admission.ts";
import { PORT_LINKS } from "./destination.ts";
import { acceptedHead, checkHandshake, handshakeHead, refusedHead } from "./handshake.ts";
import { answerThroughLink, headersForPort, type LinkPlace } from "./port-headers.ts";
import type { PortClients } from "./ports/clients.ts";
import type { LinkHosts } from "./ports/link-hosts.ts";
import type { RelayOptions } from "./relay.ts";
import { type TunnelEnd, type TunnelLimits, tunnel } from "./tunnel.ts";

export interface PortProxyOptions {
  readonly ports: PortClients;
  readonly linkHosts: LinkHosts;
  /** The path of the data port in the URL that clients use; empty for the root. */
  readonly publicPath: string;
  readonly tunnels: TunnelLimits & {
    /** WebSockets to one instance at the same time. */
    readonly perInstance: number;
  };
}

export const tunnelLimits: PortProxyOptions["tunnels"] = { handshakeMs: 60_000, idleMs: 10 * 60_000, perInstance: 256 };

/** A call through a presigned link. */
export interface LinkCall {
  readonly admitted: Admitted;
  readonly link: OpenLink;
  readonly request: IncomingMessage;
  /** Headers that the gateway adds to the request. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Forwards calls through presigned links to programs inside sandboxes. */
export class PortProxy {
  readonly #options: PortProxyOptions;
  /** How many WebSockets each instance has. */
  readonly #open = new OpenCounts();

  constructor(options: PortProxyOptions) {
    this.#options = options;
  }

  /**
   * Where a browser that opens a page through a link's path is sent: to the link's own host name, so that no page of a program runs at the
   * data port's. Null for all other requests.
   */
  ownUrl({ link, path }: Admitted, { headers }: IncomingMessage): string | null {
    if (link === undefined || link.isOwnHost || headers["sec-fetch-mode"] !== "navigate") return null;
    const url = this.#options.linkHosts.urlOf(link.token, headers.host);
    return url === null ? null : `${url}${path}`;
  }

  /** The options for relaying a plain request. */
  forRequest({ link, request, headers }: LinkCall): Pick<RelayOptions, "pool" | "headers" | "rewrite" | "limitMs"> {
    const place = this.#placeOf(link);
    return {
      pool: this.#options.ports.pool(link),
      headers: headersForPort(request, headers, place),
      rewrite: (answered) => answerThroughLink(answered, place),
      limitMs: link.leftMs,
    };
  }

  /** Carries a WebSocket until it ends. */
  async carry(call: LinkCall, client: Duplex, first: Buffer): Promise<TunnelEnd> {
    checkHandshake(call.request);
    using _ = this.#reserve(call.admitted.target.instanceId);
    const disconnected = new AbortController();
    client.once("close", () => disconnected.abort(new Error("the client disconnected")));
    try {
      return await this.#tunnel(call, client, first, disconnected.signal);
    } catch (error) {
      return disconnected.signal.aborted ? { kind: "left", status: 0 } : { kind: "lost", status: 0, error: error as Error };
    }
  }

  async #tunnel({ admitted, link, request, headers }: LinkCall, client: Duplex, first: Buffer, signal: AbortSignal): Promise<TunnelEnd> {
    const { ports, tunnels } = this.#options;
    const place = this.#placeOf(link);
    const program = await ports.connect(link, signal);
    return tunnel(client, program, {
      ...tunnels,
      lifeMs: link.leftMs,
      handshake: handshakeHead(admitted.path, headersForPort(request, headers, place)),
      first,
      accepted: (head) => acceptedHead(head, (answered) => answerThroughLink(answered, place)),
      refused: (head) => refusedHead(head, (answered) => answerThroughLink(answered, place)),
    });
  }

  #reserve(instanceId: string): Disposable {
    return this.#open.open(instanceId, this.#options.tunnels.perInstance, (count) => {
      return new PlatformError("quota.exceeded", `this instance has ${count} WebSockets open; close some, then try again`);
    });
  }

  #placeOf({ token, port, isOwnHost }: OpenLink): LinkPlace {
    return { prefix: isOwnHost ? "" : `${this.#options.publicPath}${PORT_LINKS}${token}`, port };
  }
}
