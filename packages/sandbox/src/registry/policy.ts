import { lookup as systemLookup } from "node:dns";
import { BlockList, isIP, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { isPublicAddress, PlatformError } from "@aenv/contract";
import { imageUnavailable, RegistryFailure } from "./failure.ts";

export interface RegistryPolicyOptions {
  /** Registries that may have addresses that are not public, as `host` or `host:port`; `any` for commands of the operator. */
  readonly imageRegistries?: readonly string[] | "any";
  /** Registries whose certificates are not checked, or that have none. They count as listed. */
  readonly insecureRegistries?: readonly string[];
  /** Resolves the names of registries; the default is that of this machine. */
  readonly lookup?: typeof systemLookup;
  /** The network interfaces of this machine; the default asks its system. */
  readonly interfaces?: typeof networkInterfaces;
}

/** What is at the other end of a connection. */
export type Role = "registry" | "token server" | "storage";

/** Docker's own registry is not at the host that is in its images' names. */
const DOCKER_HUB = "registry-1.docker.io";
const DOCKER_HUB_NAMES: ReadonlySet<string> = new Set(["docker.io", "index.docker.io", DOCKER_HUB]);

/** Where images may come from: from registries at public addresses, and from those that the operator lists. */
export class RegistryPolicy {
  readonly #isAny: boolean;
  readonly #listed: ReadonlySet<string>;
  readonly #insecure: ReadonlySet<string>;
  readonly #lookup: typeof systemLookup;
  readonly #interfaces: typeof networkInterfaces;

  constructor(options: RegistryPolicyOptions = {}) {
    const { imageRegistries = [], insecureRegistries = [], lookup = systemLookup, interfaces = networkInterfaces } = options;
    this.#isAny = imageRegistries === "any";
    const insecureHosts = insecureRegistries.flatMap((entry) => hostsOf(entry, "insecureRegistries", [443, 80]));
    const listedHosts = imageRegistries === "any" ? [] : imageRegistries.flatMap((entry) => hostsOf(entry, "imageRegistries", [443]));
    this.#insecure = new Set(insecureHosts);
    this.#listed = new Set([...insecureHosts, ...listedHosts]);
    this.#lookup = lookup;
    this.#interfaces = interfaces;
  }

  /**
   * The connections for images of a registry. The list counts only for registries that are on it: a public registry may not send the
   * server to the others.
   */
  destinations(registry: string): Destinations {
    const url = registryUrl(registry, "https");
    const isListed = this.#listed.has(hostAndPort(url)) || this.isInsecure(url);
    return new Destinations({
      allows: (host) => this.#isAny || (isListed && this.#listed.has(host)),
      isListed: (url) => this.#listed.has(hostAndPort(url)),
      isInsecure: (url) => this.isInsecure(url),
      lookup: this.#lookup,
      interfaces: this.#interfaces,
    });
  }

  isInsecure(url: URL): boolean {
    return this.#insecure.has(hostAndPort(url));
  }

  /**
   * Throws for a registry that Docker or a node may not be asked to connect to. It makes the connection itself, so this is a check of the
   * name and of the addresses that it has now. Docker's own registry is where its mirrors say, and is not looked up.
   */
  async assertAllowed(image: string, registry: string): Promise<void> {
    if (DOCKER_HUB_NAMES.has(registry)) return;
    try {
      await this.destinations(registry).assertNotPrivate(registryUrl(registry, "https"), "registry");
    } catch (error) {
      if (!(error instanceof RegistryFailure)) throw error;
      throw imageUnavailable(`the image '${image}' is refused: ${error.message}`);
    }
  }
}

interface DestinationRules {
  /** Whether `host:port` may have any address. */
  readonly allows: (host: string) => boolean;
  readonly isListed: (url: URL) => boolean;
  readonly isInsecure: (url: URL) => boolean;
  readonly lookup: typeof systemLookup;
  readonly interfaces: typeof networkInterfaces;
}

/** Where the connections for the images of one registry may go. */
export class Destinations {
  readonly #rules: DestinationRules;

  constructor(rules: DestinationRules) {
    this.#rules = rules;
  }

  isInsecure(url: URL): boolean {
    return this.#rules.isInsecure(url);
  }

  /** Whether the operator has named the host. */
  isListed(url: URL): boolean {
    return this.#rules.isListed(url);
  }

  /** Throws for a URL to which no connection may be made. The addresses of names are checked by `lookup`. */
  assertUrl(url: URL, role: Role): void {
    if (url.protocol !== "https:" && !(url.protocol === "http:" && this.isInsecure(url)))
      throw new RegistryFailure(
        "refused",
        `${describe(url, role)} would be asked without encryption; the operator can allow it with the setting insecureRegistries`,
      );
    const host = plainHost(url);
    if (isIP(host) > 0 && !this.#isAllowed(url, host)) throw notPublic(url, role);
  }

  /** Resolves the name of a URL for a connection to it; fails if it has no address that is allowed. */
  readonly lookup =
    (url: URL, role: Role): LookupFunction =>
    (host, options, callback) => {
      this.#rules.lookup(host, { ...options, all: true }, (error, found) => {
        if (error !== null && this.#mayTell(error, url)) return callback(error, "");
        const allowed = error === null ? found.filter(({ address }) => this.#isAllowed(url, address)) : [];
        const [first] = allowed;
        if (first === undefined) return callback(notPublic(url, role), "");
        if (options.all === true) callback(null, allowed);
        else callback(null, first.address, first.family);
      });
    };

  /**
   * Throws for a URL with an address that is not allowed, where somebody else resolves the name again: a proxy, Docker or a node. A name
   * without an address here may have one there.
   */
  async assertNotPrivate(url: URL, role: Role): Promise<void> {
    if (this.#rules.allows(hostAndPort(url))) return;
    const host = plainHost(url);
    const found =
      isIP(host) > 0
        ? [host]
        : await new Promise<readonly string[]>((resolve) => {
            this.#rules.lookup(host, { all: true }, (error, all) => resolve(error === null ? all.map(({ address }) => address) : []));
          });
    if (!found.every((address) => this.#isAllowed(url, address))) throw notPublic(url, role);
  }

  /**
   * A name without an address counts as one without a public address: otherwise, the answer would tell which names an internal name server
   * knows. Name servers that do not answer are another matter, and the next attempt may succeed.
   */
  #mayTell(error: NodeJS.ErrnoException, url: URL): boolean {
    const isMissing = error.code === "ENOTFOUND" || error.code === "ENODATA";
    return !isMissing || url.hostname === DOCKER_HUB || this.#rules.allows(hostAndPort(url));
  }

  #isAllowed(url: URL, address: string): boolean {
    return this.#rules.allows(hostAndPort(url)) || (isPublicAddress(address) && !isOneOf(this.#rules.interfaces(), address));
  }
}

/** Where the images of a registry are asked for. */
export function registryUrl(registry: string, scheme: "http" | "https"): URL {
  const host = DOCKER_HUB_NAMES.has(registry) ? DOCKER_HUB : registry;
  if (URL.canParse(`${scheme}://${host}/`)) return new URL(`${scheme}://${host}/`);
  throw new RegistryFailure("refused", `'${registry}' is not the host of a registry`);
}

/** An entry without a port means the default ports. */
function hostsOf(entry: string, setting: string, ports: readonly number[]): string[] {
  const host = entry.trim();
  if (!/^[^\s/?#@]+$/.test(host) || !URL.canParse(`https://${host}`))
    throw new PlatformError(
      "request.invalid",
      `the server's configuration is wrong: ${setting} has '${entry}', which is not a host such as registry.example:5000`,
    );
  if (/:\d+$/.test(host)) return [hostAndPort(registryUrl(host, "https"))];
  const { hostname } = registryUrl(host, "https");
  return ports.map((port) => hostAndPort(new URL(`https://${hostname}:${port}/`)));
}

/** As `host:port`, with the default port of the scheme. */
function hostAndPort(url: URL): string {
  return `${plainHost(url)}:${url.port || (url.protocol === "https:" ? 443 : 80)}`;
}

function plainHost({ hostname }: URL): string {
  return hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** A program may listen on a public address of this machine that a firewall closes for others. */
function isOneOf(interfaces: ReturnType<typeof networkInterfaces>, address: string): boolean {
  const own = new BlockList();
  for (const { address: one, family } of Object.values(interfaces).flatMap((all) => all ?? []))
    own.addAddress(one, family === "IPv4" ? "ipv4" : "ipv6");
  // It finds an IPv4 address also in an IPv6 address that has it inside.
  return own.check(address, isIP(address) === 4 ? "ipv4" : "ipv6");
}

function notPublic(url: URL, role: Role): RegistryFailure {
  const also = role === "registry" ? "" : " beside the registry itself";
  return new RegistryFailure(
    "refused",
    `${describe(url, role)} has no public address; the operator can allow it by listing ${url.host}${also} in the setting imageRegistries`,
  );
}

function describe({ host }: URL, role: Role): string {
  switch (role) {
    case "registry":
      return `its registry ${host}`;
    case "token server":
      return `the token server ${host}, which its registry names,`;
    case "storage":
      return `the host ${host}, to which its registry redirects,`;
  }
}
