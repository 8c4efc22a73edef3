import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf, PlatformError } from "@aenv/contract";

/** Listens, or says clearly why it cannot. */
export async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
    const why = isTaken ? "something else listens there already; stop it, or choose another port" : messageOf(error);
    throw new PlatformError("internal", `cannot listen on ${host}:${port}: ${why}`, { cause: error });
  }
}

export function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = isEverywhere(host) ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** Whether a server that listens there listens on every address of its machine. */
export function isEverywhere(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Stops listening and waits for calls in flight, but not for ever. */
export async function finish(server: Server, graceMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  // Again and again: a connection whose call has just finished would be kept for the next one.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const late = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}
