import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { commandRoutes, errorTable, matchesPath, PlatformError } from "@aenv/contract";
import type { FastifyInstance } from "fastify";
import { WebSocketServer } from "ws";
import type { Terminals } from "../commands/terminals.ts";
import { endConnection } from "../http/drain.ts";
import type { AppOptions } from "./app.ts";
import { toClientError } from "./failure.ts";

export interface UpgradeOptions extends Pick<AppOptions, "access" | "hostRule" | "audit" | "shown" | "logger"> {
  readonly terminals: Terminals;
}

const MAX_MESSAGE_BYTES = 1024 ** 2;

/** Serves the WebSockets of the control port: commands with input and terminals. */
export function serveUpgrades(app: FastifyInstance, options: UpgradeOptions): void {
  const { access, hostRule, audit, terminals, logger, shown } = options;
  const sockets = new WebSocketServer({ noServer: true, clientTracking: false, perMessageDeflate: false, maxPayload: MAX_MESSAGE_BYTES });

  async function upgrade(request: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    hostRule.check(request.headers, request.rawHeaders);
    const { pathname } = new URL(request.url ?? "/", "http://server");
    const segments = pathname.split("/").slice(1).map(decodeURIComponent);
    const caller = await access.identify(request.headers.authorization);
    access.assertRole(caller, "trainer", "publisher");
    if (!matchesPath(commandRoutes.terminal.path, segments))
      throw new PlatformError("route.not_found", `${pathname} is not a WebSocket of this API; /env-instance/ID/terminal is`);
    const id = segments[1] ?? "";
    sockets.handleUpgrade(request, socket, head, (accepted) => {
      const client = request.socket.remoteAddress ?? null;
      audit.change("command.started", [id], { owner: caller.owner, requestId: null, client });
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
