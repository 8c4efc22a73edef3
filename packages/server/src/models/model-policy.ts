import { lookup as systemLookup } from "node:dns";
import { BlockList, isIP, isIPv4, type LookupFunction } from "node:net";
import { networkInterfaces } from "node:os";
import { isPublicAddress, PlatformError } from "@aenv/contract";

/** What the operator allows, one entry each. */
type Rule =
  | { readonly kind: "class"; readonly name: AddressClass }
  | { readonly kind: "block"; readonly block: BlockList }
  | { readonly kind: "host"; readonly host: string }
  | { readonly kind: "prefix"; readonly url: URL };

const classes = ["loopback", "private", "public"] as const;
type AddressClass = (typeof classes)[number];

/** Link-local addresses, those of clouds' metadata services, and addresses that are no endpoint of anything. Never allowed. */
const FORBIDDEN = blocks(
  "0.0.0.0/8",
  "169.254.0.0/16",
  "100.100.100.200/32",
  "168.63.129.16/32",
  "192.0.0.0/24",
  "224.0.0.0/3",
  "::/128",
  "fe80::/10",
  "ff00::/8",
  "fd00:ec2::/32",
  "fd20:ce::/32",
);
const LOOPBACK = blocks("127.0.0.0/8", "::1/128");

/**
 * Which model endpoints the server dials for its callers. A name is resolved once, its address is checked, and that address is dialled.
 */
export class ModelPolicy {
  readonly #rules: readonly Rule[];
  readonly #ownPorts: () => readonly number[];
  readonly #resolve: typeof systemLookup;

  constructor(entries: readonly string[], ownPorts: () => readonly number[], resolve: typeof systemLookup = systemLookup) {
    this.#rules = entries.map(parseRule);
    this.#ownPorts = ownPorts;
    this.#resolve = resolve;
  }

  /** Why the URL may not be called, or null. Names are checked again when they are resolved. */
  urlProblem(url: URL): string | null {
    if (url.username !== "" || url.password !== "") return "contains a user name or password; send credentials as api_key or headers";
    if (url.search !== "" || url.hash !== "")
      return "has a query or a fragment; the API's path is appended to it, so it must end with a path";
    // Some endpoints decode a path before they look at its segments.
    if (/%(2e|2f|5c)/i.test(url.pathname)) return "has an escaped '.', '/' or '\\' in its path; write the path without it";
    const host = hostOf(url);
    const address = host === "localhost" ? "127.0.0.1" : isIP(host) > 0 ? host : null;
    if (address !== null && this.#isOwnPort(portOf(url), address)) return "is a port of this server itself";
    const byName = this.#rules.some((rule) => allowsUrl(rule, url));
    if (address !== null) return byName && !isForbidden(address) ? null : this.#addressProblem(address);
    // A host of which only some URLs are listed is allowed under these only.
    const isListed = this.#rules.some((rule) => rule.kind === "prefix" && hostOf(rule.url) === host);
    return isListed && !byName ? refusal(`is not below a URL that this server's setting rolloutModels lists for ${host}`) : null;
  }

  /** Resolves names for connections to a port; fails if the address is not allowed, or is this server itself. */
  readonly lookup =
    (port: number): LookupFunction =>
    (host, options, callback) => {
      this.#resolve(host, { ...options, all: true }, (error, found) => {
        if (error !== null) return callback(error, "");
        if (found.some(({ address }) => this.#isOwnPort(port, address)))
          return callback(refused(`the model's endpoint ${host} is a port of this server itself`), "");
        const isTrusted = this.#rules.some((rule) => allowsHost(rule, host));
        const allowed = found.filter(({ address }) => (isTrusted ? !isForbidden(address) : this.#addressProblem(address) === null));
        const [first] = allowed;
        if (first === undefined) return callback(refused(`the model's endpoint ${host} ${this.#refusalOf(found)}`), "");
        if (options.all === true) callback(null, allowed);
        else callback(null, first.address, first.family);
      });
    };

  #refusalOf(found: readonly { readonly address: string }[]): string {
    const address = found[0]?.address;
    return address === undefined ? "has no address" : (this.#addressProblem(address) ?? refusal("is not allowed"));
  }

  #addressProblem(address: string): string | null {
    const plain = withoutMapping(address);
    if (isForbidden(plain)) return `has the address ${plain}, which is link-local, a metadata service or no endpoint; it is never called`;
    const isAllowed = this.#rules.some((rule) =>
      rule.kind === "class" ? rule.name === classOf(plain) : rule.kind === "block" && contains(rule.block, plain),
    );
    return isAllowed ? null : refusal(`has the ${classOf(plain)} address ${plain}`);
  }

  #isOwnPort(port: number, address: string): boolean {
    if (!this.#ownPorts().includes(port)) return false;
    const plain = withoutMapping(address);
    return contains(LOOPBACK, plain) || Object.values(networkInterfaces()).some((all) => all?.some((one) => one.address === plain));
  }
}

/** The entries that apply if the operator sets none: on a server for this machine only, everything; on a shared one, public addresses. */
export function defaultModels(isShared: boolean): readonly string[] {
  return isShared ? ["public"] : classes;
}

function parseRule(entry: string): Rule {
  const text = entry.trim();
  const known = classes.find((name) => name === text);
  if (known !== undefined) return { kind: "class", name: known };
  if (/^https?:\/\//i.test(text) && URL.canParse(text)) return { kind: "prefix", url: new URL(text) };
  const [address = "", bits] = text.split("/");
  const family = isIP(address);
  if (family > 0 && (bits === undefined || /^\d{1,3}$/.test(bits)) && Number(bits ?? 0) <= (family === 4 ? 32 : 128)) {
    return { kind: "block", block: blocks(bits === undefined ? `${address}/${family === 4 ? 32 : 128}` : text) };
  }
  if (/^(\*\.)?[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$/i.test(text)) return { kind: "host", host: text.toLowerCase() };
  throw new PlatformError(
    "request.invalid",
    `the server's configuration is wrong: rolloutModels has '${entry}'; write loopback, private, public, a host, *.domain, an address range such as 10.0.0.0/8, or the beginning of a URL`,
  );
}

function allowsUrl(rule: Rule, url: URL): boolean {
  if (rule.kind === "host") return allowsHost(rule, hostOf(url));
  if (rule.kind !== "prefix" || rule.url.origin !== url.origin) return false;
  const path = rule.url.pathname.replace(/\/$/, "");
  return url.pathname === path || url.pathname.startsWith(`${path}/`);
}

function allowsHost(rule: Rule, host: string): boolean {
  const name = host.toLowerCase();
  if (rule.kind === "prefix") return hostOf(rule.url) === name;
  if (rule.kind !== "host") return false;
  return rule.host.startsWith("*.") ? name.endsWith(rule.host.slice(1)) : name === rule.host;
}

function portOf({ port, protocol }: URL): number {
  return Number(port || (protocol === "https:" ? 443 : 80));
}

function hostOf({ hostname }: URL): string {
  return hostname
    .replace(/^\[|\]$/g, "")
    .replace(/\.$/, "")
    .toLowerCase();
}

/** Addresses whose destination depends on the network, such as IPv6 addresses with an IPv4 address in them, count as private. */
function classOf(address: string): AddressClass {
  return contains(LOOPBACK, address) ? "loopback" : isPublicAddress(address) ? "public" : "private";
}

function isForbidden(address: string): boolean {
  return contains(FORBIDDEN, withoutMapping(address));
}

/** The IPv4 address of `::ffff:127.0.0.1`, in either notation; other addresses as they are. */
function withoutMapping(address: string): string {
  const plain = address.replace(/%.*$/, "");
  if (isIPv4(plain) || isIP(plain) === 0) return plain;
  const compact = new URL(`http://[${plain}]`).hostname.slice(1, -1);
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(compact) ?? [];
  if (high === undefined || low === undefined) return compact;
  const bytes = Buffer.alloc(4);
  bytes.writeUInt16BE(Number.parseInt(high, 16), 0);
  bytes.writeUInt16BE(Number.parseInt(low, 16), 2);
  return bytes.join(".");
}

function contains(block: BlockList, address: string): boolean {
  return block.check(address, isIPv4(address) ? "ipv4" : "ipv6");
}

function blocks(...ranges: readonly string[]): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [address = "", bits] = range.split("/");
    list.addSubnet(address, Number(bits), isIPv4(address) ? "ipv4" : "ipv6");
  }
  return list;
}

function refused(message: string): PlatformError {
  return new PlatformError("model.failed", message, { retryable: false });
}

function refusal(why: string): string {
  return `${why}, which this server does not call; its operator can allow it with the setting rolloutModels`;
}
