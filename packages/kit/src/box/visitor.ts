import type { IncomingMessage } from "node:http";
import { PlatformError } from "@aenv/contract";

/**
 * A page on the web can make a browser talk to a server on loopback under any name (DNS rebinding). So such a server
 * answers only those who address it by a loopback name, and pages that come from one.
 */
export class VisitorCheck {
  readonly #allowed: ReadonlySet<string> | null;

  /** Without names to allow, everyone is let in: the server is meant to be reached from elsewhere. */
  constructor(allowedHosts: readonly string[] | null) {
    this.#allowed = allowedHosts === null ? null : new Set(allowedHosts);
  }

  demand(request: IncomingMessage): void {
    if (this.#allowed === null) return;
    const { host, origin } = request.headers;
    if (!this.#isKnown(host === undefined ? null : hostnameOf(`http://${host}`))) throw forbidden("Host", host);
    if (origin !== undefined && !this.#isKnown(hostnameOf(origin))) throw forbidden("Origin", origin);
  }

  #isKnown(hostname: string | null): boolean {
    return hostname !== null && (isLoopback(hostname) || this.#allowed?.has(hostname) === true);
  }
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

// The same few names come with every request of a client.
const known = new Map<string, string | null>();

function hostnameOf(url: string): string | null {
  const cached = known.get(url);
  if (cached !== undefined) return cached;
  const hostname = URL.canParse(url) ? new URL(url).hostname : null;
  if (known.size >= 64) known.clear();
  known.set(url, hostname);
  return hostname;
}

function forbidden(header: string, value: string | undefined): PlatformError {
  return new PlatformError(
    "request.forbidden_origin",
    `this server does not answer to ${header} '${value ?? ""}': it listens on loopback only; pass allowedHosts to admit more names`,
  );
}
