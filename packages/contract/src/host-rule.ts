import { PlatformError } from "./errors.ts";

export interface HostHeaders {
  readonly host?: string | undefined;
  readonly origin?: string | undefined;
}

export interface PageHeaders extends HostHeaders {
  readonly "sec-fetch-site"?: string | string[] | undefined;
  readonly "sec-fetch-mode"?: string | string[] | undefined;
}

/** A request that a page may have sent. */
export interface PageRequest {
  readonly headers: PageHeaders;
  /** Undefined for an upgrade, which is never a navigation. */
  readonly method?: string | undefined;
}

export interface HostRule {
  /**
   * Throws if the request's Host or Origin is not allowed. `rawHeaders` are names and values in turn, as received: a parser keeps only
   * one of two Host headers. A caller that has already refused duplicates may omit them.
   */
  check(headers: HostHeaders, rawHeaders?: readonly string[]): void;
  /**
   * Throws if a page of another origin has sent the request: a page of any site can send requests to loopback, and open WebSockets there.
   * A navigation is no request of a page: it is allowed with GET. `trusted` are the pages that may send requests: those of this server's
   * own origin, or none, where the origin also has pages of others. Clients that are no browsers send neither of the headers.
   */
  checkPage(request: PageRequest, trusted?: "own origin" | "none"): void;
}

/**
 * A web page can make a browser send requests to a server on loopback under the page's own host name (DNS rebinding). So a server on
 * loopback accepts only loopback's names and `allowedHosts`, as Host and as Origin. A server that listens on other addresses cannot
 * know its names. Both refuse a Host that is not a plain name or address, with an optional port.
 */
export function hostRuleFor(listenHost: string, allowedHosts: readonly string[]): HostRule {
  const isLocal = isLoopback(listenHost);
  const isAllowed = (name: string | null) => name !== null && (!isLocal || isLoopback(name) || allowedHosts.includes(name));
  let lastAllowed: string | null = null;
  return {
    check: ({ host, origin }, rawHeaders) => {
      if (rawHeaders !== undefined) checkSingleHost(rawHeaders);
      // HTTP/1.0 has no Host; a health check of a load balancer may send none.
      if (host === undefined && isLocal) throw forbidden("Host", host);
      // Nearly all requests have the same host.
      if (host !== undefined && host !== lastAllowed) {
        if (!isAllowed(hostName(host))) throw forbidden("Host", host);
        lastAllowed = host;
      }
      if (isLocal && origin !== undefined && !isAllowed(originName(origin))) throw forbidden("Origin", origin);
    },
    checkPage: ({ headers, method }, trusted = "own origin") => {
      const { host, origin, "sec-fetch-site": site, "sec-fetch-mode": mode } = headers;
      if (origin === undefined && site === undefined) return;
      if (mode === "navigate" && method === "GET") return;
      const isTrustedSite = site === undefined || site === "none" || (site === "same-origin" && trusted === "own origin");
      if (!isTrustedSite) throw forbiddenPage(`Sec-Fetch-Site '${String(site).slice(0, 100)}'`);
      if (origin === undefined || isOriginOf(origin, host)) return;
      const name = originName(origin);
      if (name === null || !allowedHosts.includes(name)) throw forbiddenPage(`Origin '${origin.slice(0, 100)}'`);
    },
  };
}

/** True if the Origin has the Host's name and port. A Host without a port has the default one of the Origin's scheme: a proxy may end TLS. */
export function isOriginOf(origin: string, host: string | undefined): boolean {
  const [, scheme = "", place = ""] = /^(https?):\/\/(.+)$/i.exec(origin) ?? [];
  const defaultPort = scheme.toLowerCase() === "https" ? "443" : "80";
  const [own, theirs] = [withPort(host ?? "", defaultPort), withPort(place, defaultPort)];
  return own !== null && own === theirs;
}

function withPort(host: string, defaultPort: string): string | null {
  const name = hostName(host);
  return name === null ? null : `${name}:${Number(HOST.exec(host)?.[2] ?? defaultPort)}`;
}

/** The name in a Host header: `lab.example` of `lab.example:8080`, `[::1]` of `[::1]:8080`; null if it is anything but a host and a port. */
export function hostName(host: string): string | null {
  const [, name, port] = HOST.exec(host) ?? [];
  if (name === undefined || (port !== undefined && Number(port) > 65_535)) return null;
  return name.toLowerCase();
}

export function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "::1" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

/** Container networks use underscores in host names. */
const HOST = /^([a-z0-9_](?:[a-z0-9._-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?$/i;

function originName(origin: string): string | null {
  const found = /^https?:\/\/(.+)$/i.exec(origin)?.[1];
  return found === undefined ? null : hostName(found);
}

/** Throws if there are several Host headers. `rawHeaders` are names and values in turn. */
export function checkSingleHost(rawHeaders: readonly string[]): void {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] as string;
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  if (hosts > 1) throw new PlatformError("request.forbidden_origin", "the request has several Host headers; send exactly one");
}

function forbiddenPage(header: string): PlatformError {
  const message = `this server takes no requests from pages of other origins, and this one has ${header}; behind a proxy that changes the Host header, name the proxy's host in allowedHosts`;
  return new PlatformError("request.forbidden_origin", message);
}

function forbidden(header: string, value: string | undefined): PlatformError {
  const name = header === "Host" ? hostName(value ?? "") : originName(value ?? "");
  const hint = name === null ? `send a plain host name, with a port or without` : `name it in allowedHosts to admit it`;
  return new PlatformError(
    "request.forbidden_origin",
    `this server does not answer to ${header} '${(value ?? "").slice(0, 100)}'; ${hint}`,
  );
}
