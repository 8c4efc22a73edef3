import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { messageOf, PlatformError } from "@aenv/contract";

/** Listens, or throws an error that says why it cannot and what to do. */
export async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen({ host, port });
  try {
    await once(server, "listening");
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
    const why = isTaken ? "the port is in use by another process; stop that process, or choose another port" : messageOf(error);
    throw new PlatformError("internal", `cannot listen on ${host}:${port}: ${why}`, { cause: error });
  }
}

export function urlOf(server: Server, host: string): string {
  const { port } = server.address() as AddressInfo;
  const name = isWildcard(host) ? "localhost" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}

/** True for the wildcard addresses: a server that listens there listens on all addresses of its machine. */
export function isWildcard(host: string): boolean {
  return host === "0.0.0.0" || host === "::";
}

/** Stops listening and waits for calls in flight, up to `graceMs`. */
export async function finish(server: Server, graceMs: number): Promise<void> {
  if (!server.listening) return;
  const closed = once(server, "close");
  server.close();
  // Repeated, because a connection becomes idle when its last call ends.
  const idle = setInterval(() => server.closeIdleConnections(), 50);
  const late = setTimeout(() => server.closeAllConnections(), graceMs);
  await closed;
  clearInterval(idle);
  clearTimeout(late);
}
