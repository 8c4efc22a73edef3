import type { IncomingHttpHeaders } from "node:http";
import { PlatformError } from "@aenv/contract";

export interface VisitorRule {
  demand(headers: IncomingHttpHeaders): void;
}

/**
 * A web page can reach a server on loopback under a name of its own (DNS rebinding); so such a server answers only to
 * loopback's names and the ones it is told. One that listens beyond loopback has names that it cannot know.
 */
export function visitorRule(listenHost: string, allowedHosts: readonly string[]): VisitorRule {
  if (!isLoopback(listenHost)) return { demand: () => {} };
  const isKnown = (hostname: string) => isLoopback(hostname) || allowedHosts.includes(hostname);
  let lastKnown: string | null | undefined = null;
  return {
    demand: ({ host, origin }) => {
      // The same host comes with nearly every request.
      if (host !== lastKnown) {
        if (!isKnown(hostnameOf(`http://${host ?? ""}`))) throw forbidden("Host", host);
        lastKnown = host;
      }
      if (origin !== undefined && !isKnown(hostnameOf(origin))) throw forbidden("Origin", origin);
    },
  };
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

// The same few names come with every request.
const hostnames = new Map<string, string>();

function hostnameOf(url: string): string {
  const known = hostnames.get(url);
  if (known !== undefined) return known;
  const hostname = URL.canParse(url) ? new URL(url).hostname : "";
  if (hostnames.size >= 100) hostnames.clear();
  hostnames.set(url, hostname);
  return hostname;
}

function forbidden(header: string, value: string | undefined): PlatformError {
  return new PlatformError(
    "request.forbidden_origin",
    `this server does not answer to ${header} '${value ?? ""}'; name it in allowedHosts to admit it`,
  );
}
