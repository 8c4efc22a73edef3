import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { PlatformError } from "@aenv/contract";
import type { Access, Hub } from "@aenv/server/trainer-services";
import { type Admitted, admit } from "./admission.ts";
import { type WebSocketLimits, webSocketLimits } from "./connection.ts";
import { type HttpReply, HttpRoutes, type HttpRoutesOptions } from "./http-routes.ts";
import { Registry, type RegistryOptions } from "./registry.ts";
import { WebSockets } from "./web-sockets.ts";

export interface OpenEnvOptions extends RegistryOptions, Omit<HttpRoutesOptions, "maxBodyBytes"> {
  readonly hub: Hub;
  readonly access: Access;
  readonly limits?: WebSocketLimits;
}

/**
 * The OpenEnv protocol for every published environment. It resets and scores, so it belongs to the trainer API: an agent's token opens
 * nothing of it.
 */
export class OpenEnv {
  readonly #options: OpenEnvOptions;
  readonly #registry: Registry;
  readonly #http: HttpRoutes;
  readonly #webSockets: WebSockets;
  #isClosed = false;

  constructor(options: OpenEnvOptions) {
    const { limits = webSocketLimits } = options;
    this.#options = options;
    this.#registry = new Registry(options);
    this.#http = new HttpRoutes({ ...options, maxBodyBytes: limits.maxMessageBytes }, this.#registry);
    this.#webSockets = new WebSockets({ ...options, limits }, this.#registry);
  }

  /** Answers a plain request. Throws `PlatformError` if the caller is refused; `onCaller` is told who it is. */
  async answer(request: IncomingMessage, onCaller: (owner: string) => void): Promise<HttpReply> {
    const admitted = await this.#admit(request, onCaller);
    const version = await this.#options.hub.resolve(admitted.ref, admitted.caller);
    return this.#http.answer(request, { ...admitted, version, ref: `${version.name}@${version.version}` });
  }

  /** Serves a WebSocket until it ends. Throws if it is refused. */
  async upgrade(request: IncomingMessage, socket: Duplex, first: Buffer, onCaller: (owner: string) => void): Promise<void> {
    await this.#webSockets.serve(request, socket, first, await this.#admit(request, onCaller));
  }

  sweep(): Promise<void> {
    return this.#registry.sweep();
  }

  /** Ends all sessions and connections. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#webSockets.close();
    await this.#registry.close();
  }

  async #admit(request: IncomingMessage, onCaller: (owner: string) => void): Promise<Admitted> {
    if (this.#isClosed) throw new PlatformError("server.draining", "this server is shutting down; retry later, or at another server");
    return admit(request, this.#options.access, onCaller);
  }
}
