import { hostName, isLoopback } from "@aenv/contract";

export interface LinkHostsOptions {
  /** `https://*.links.example`, where each link has a name instead of the star; null if there is no such domain. */
  readonly linkUrl: string | null;
  readonly publicUrl: string | null;
}

/** Browsers resolve all names below it to loopback. */
const LOCALHOST = "localhost";
/** A name of a host has at most 63 characters, and is the same in upper and lower case. */
const LABEL = /^([0-9a-f]{32})\.(.+)$/;

/**
 * A host name for each link to a port, so that browsers keep apart the pages, cookies, storage and workers of different links. The
 * link's token is the first label of the name.
 */
export class LinkHosts {
  readonly #options: LinkHostsOptions;
  readonly #domains: ReadonlySet<string>;
  /** Nearly all requests have the same host. */
  #lastOther: string | undefined;

  constructor(options: LinkHostsOptions) {
    this.#options = options;
    const domain = options.linkUrl === null ? [] : [domainOf(options.linkUrl)];
    this.#domains = new Set([LOCALHOST, ...domain]);
  }

  /** True if the operator has a domain for links: names below it can be resolved by every client, unlike those below `localhost`. */
  get hasDomain(): boolean {
    return this.#options.linkUrl !== null;
  }

  /** The token of the link whose host this is; null for other hosts. */
  tokenIn(host: string | undefined): string | null {
    if (host === undefined || host === this.#lastOther) return null;
    const [, token, domain = ""] = LABEL.exec(hostName(host) ?? "") ?? [];
    if (token !== undefined && this.#domains.has(domain)) return token;
    this.#lastOther = host;
    return null;
  }

  /**
   * The URL of a link's own host, without a slash at the end. Null if it has none: a client that reaches the data port at this host by
   * another name than loopback's cannot resolve names below `localhost`.
   */
  urlOf(token: string, host: string | undefined): string | null {
    const { linkUrl, publicUrl } = this.#options;
    // A token from before links had hosts.
    if (!/^[0-9a-f]{32}$/.test(token)) return null;
    if (linkUrl !== null) return linkUrl.replace("*", token).replace(/\/$/, "");
    const name = hostName(host ?? "");
    if (name === null || !isLoopback(name) || (publicUrl !== null && !isPlainLoopback(publicUrl))) return null;
    const port = /:(\d+)$/.exec(host ?? "")?.[1];
    return `http://${token}.${LOCALHOST}${port === undefined ? "" : `:${port}`}`;
  }
}

function domainOf(linkUrl: string): string {
  return new URL(linkUrl.replace("*.", "")).hostname;
}

function isPlainLoopback(url: string): boolean {
  const { protocol, hostname, pathname } = new URL(url);
  return protocol === "http:" && isLoopback(hostname) && pathname === "/";
}
