import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo, Server as NetServer } from "node:net";
import { messageOf, PlatformError } from "@aenv/contract";

/** Listens, or throws an error that says why it cannot and what to do. */
export async function listen(server: NetServer, host: string, port: number): Promise<void> {
  await listenOn(server, { host, port });
}

/** The same on a port that other processes of this server listen on too: the operating system divides the connections between them. */
export async function listenWithOthers(server: NetServer, host: string, port: number): Promise<void> {
  await listenOn(server, { host, port, reusePort: true });
}

/** Listens on a socket file. */
export async function listenAt(server: NetServer, path: string): Promise<void> {
  server.listen({ path });
  await once(server, "listening");
}

async function listenOn(
  server: NetServer,
  options: { readonly host: string; readonly port: number; readonly reusePort?: boolean },
): Promise<void> {
  const { host, port } = options;
  server.listen(options);
  try {
    await once(server, "listening");
  } catch (error) {
    const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
    const why = isTaken ? "the port is in use by another process; stop that process, or choose another port" : messageOf(error);
    throw new PlatformError("internal", `cannot listen on ${host}:${port}: ${why}`, { cause: error });
  }
}

/** The port of a server that listens on one. */
export function portOf(server: NetServer): number {
  return (server.address() as AddressInfo).port;
}

export function urlOf(port: number, host: string): string {
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

/** The URL of a port for a client on the same machine. */
export function loopbackUrl(port: number, host: string): string {
  const name = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
}
