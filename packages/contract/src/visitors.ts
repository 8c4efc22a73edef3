import { PlatformError } from "./errors.ts";

export interface VisitorRule {
  demand(headers: { readonly host?: string | undefined; readonly origin?: string | undefined }): void;
}

/**
 * A page on the web can make a browser talk to a server on loopback under a name of its own (DNS rebinding). So such a server
 * answers only to loopback's names and the ones it is told, and to pages that come from one of these. One that listens beyond
 * loopback has names that it cannot know.
 */
export function visitorRule(listenHost: string, allowedHosts: readonly string[]): VisitorRule {
  if (!isLoopback(listenHost)) return { demand: () => {} };
  const isKnown = (url: string) => {
    const hostname = URL.canParse(url) ? new URL(url).hostname : "";
    return isLoopback(hostname) || allowedHosts.includes(hostname);
  };
  let lastKnown: string | null = null;
  return {
    demand: ({ host, origin }) => {
      // The same host comes with nearly every request.
      if (host === undefined || host !== lastKnown) {
        if (host === undefined || !isKnown(`http://${host}`)) throw forbidden("Host", host);
        lastKnown = host;
      }
      if (origin !== undefined && !isKnown(origin)) throw forbidden("Origin", origin);
    },
  };
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

function forbidden(header: string, value: string | undefined): PlatformError {
  return new PlatformError(
    "request.forbidden_origin",
    `this server does not answer to ${header} '${value ?? ""}'; name it in allowedHosts to admit it`,
  );
}
