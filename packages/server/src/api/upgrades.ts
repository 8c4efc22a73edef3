import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { commandRoutes, errorTable, LISTEN_PROTOCOL, matchesPath, PlatformError } from "@aenv/contract";
import type { FastifyInstance } from "fastify";
import { WebSocketServer } from "ws";
import type { Listeners } from "../commands/listeners.ts";
import type { Terminals } from "../commands/terminals.ts";
import { endConnection } from "../http/drain.ts";
import { asksToListen } from "../http/upgrade.ts";
import type { AppOptions } from "./app.ts";
import { toClientError } from "./failure.ts";

export interface UpgradeOptions extends Pick<AppOptions, "access" | "hostRule" | "audit" | "shown" | "logger"> {
  readonly terminals: Terminals;
  readonly listeners: Listeners;
}

const MAX_MESSAGE_BYTES = 1024 ** 2;

/** Serves the upgrades of the control port: WebSockets for commands with input and for terminals, and ports inside sandboxes. */
export function serveUpgrades(app: FastifyInstance, options: UpgradeOptions): void {
  const { access, hostRule, audit, terminals, listeners, logger, shown } = options;
  const sockets = new WebSocketServer({
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: MAX_MESSAGE_BYTES,
  });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    hostRule.check(request.headers, request.rawHeaders);
    hostRule.checkPage({ headers: request.headers });
    const { pathname, searchParams } = new URL(request.url ?? "/", "http://server");
    const segments = pathname.split("/").slice(1).map(decodeURIComponent);
    const caller = await access.identify(request.headers.authorization);
    access.assertRole(caller, "trainer", "publisher");
    const id = segments[1] ?? "";
    const note = { owner: caller.owner, requestId: null, client: request.socket.remoteAddress ?? null };
    if (matchesPath(commandRoutes.listen.path, segments)) {
      if (!asksToListen(request))
        throw new PlatformError("request.invalid", `this route needs the header 'upgrade: ${LISTEN_PROTOCOL}', with 'connection: upgrade'`);
      await listeners.serve(socket, id, portIn(searchParams), caller);
      audit.change("port.listened", [id], note);
      return;
    }
    if (!matchesPath(commandRoutes.terminal.path, segments))
      throw new PlatformError("route.not_found", `${pathname} is not a WebSocket of this API; /env-instance/ID/terminal is`);
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      audit.change("command.started", [id], note);
      void terminals.serve(accepted, id, caller);
    });
  }

  app.server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    // A broken connection also emits `close`.
    socket.on("error", () => {});
    upgrade(request, socket, head).catch((error: unknown) => {
      const { code, message, retryable } = toClientError(error, { id: "", log: logger }, shown);
      const { status } = errorTable[code];
      const body = JSON.stringify({ success: false, code: status, message, data: null, error: { code, message, retryable } });
      const lines = [
        `HTTP/1.1 ${status} Refused`,
        "content-type: application/json",
        `content-length: ${Buffer.byteLength(body)}`,
        "connection: close",
      ];
      endConnection(socket, Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`));
    });
  });
}

function portIn(query: URLSearchParams): number {
  const text = query.get("port") ?? "0";
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (port <= 65_535) return port;
  throw new PlatformError("request.invalid", `'${text}' is not a port; write a number up to 65535, or 0 for any that is free`);
}
