import { ValidationError } from "../errors/errors.ts";
import type { Settings } from "./settings.ts";

const CONTROL_PORT = 8080;
const DATA_PORT = 8081;

export interface AddressOptions {
  /**
   * The platform, for example `http://aenv.example:9000`: the address of its control API, which reports the data port's address.
   * Without a port, control is expected on 8080 and data on 8081, as the original's clients do.
   */
  readonly systemUrl?: string;
  /** An environment that already runs, for example the URL that `aenv run` prints; no instance is created. */
  readonly instanceUrl?: string;
  /** URL of the control API, used exactly as given. */
  readonly controlUrl?: string;
  /** URL of the data port, used exactly as given; overrides the address that the server reports. */
  readonly dataUrl?: string;
}

/** The resolved addresses. No URL ends with a slash. */
export type Addresses =
  | {
      readonly mode: "local";
      readonly dataUrl: string;
      /** Base URL of the sandbox, whose routes create and end instances. */
      readonly sandboxUrl: string;
      /** The instance's id in the sandbox, or null for the one at the sandbox's root. */
      readonly instanceId: string | null;
    }
  | {
      readonly mode: "remote";
      readonly controlUrl: string;
      /** Null if the server reports it. */
      readonly dataUrl: string | null;
    };

/**
 * An explicit option overrides a variable. `DUMMY_INSTANCE_IP` switches to local mode, unless a control API is named.
 */
export function resolveAddresses(options: AddressOptions, settings: Settings): Addresses {
  const isLocal = options.instanceUrl !== undefined || (settings.dummyInstanceIp !== undefined && options.controlUrl === undefined);
  const system = options.systemUrl ?? settings.dummyInstanceIp ?? settings.systemUrl ?? "http://localhost";
  if (isLocal) {
    if (options.dataUrl !== undefined) return local(exactDataUrl(options.dataUrl));
    return local(options.instanceUrl === undefined ? atPort(system, DATA_PORT) : instanceUrl(options.instanceUrl));
  }
  const { controlUrl, systemUrl } = options;
  return {
    mode: "remote",
    controlUrl: controlUrl === undefined ? systemControlUrl(system) : exactUrl(controlUrl),
    dataUrl: options.dataUrl === undefined ? defaultDataUrl(controlUrl === undefined ? system : systemUrl) : exactDataUrl(options.dataUrl),
  };
}

/** Options that resolve to the same addresses, independent of the variables. */
export function pinAddresses(addresses: Addresses): AddressOptions {
  if (addresses.mode === "local") return { instanceUrl: addresses.dataUrl, dataUrl: addresses.dataUrl };
  const { controlUrl, dataUrl } = addresses;
  return { controlUrl, ...(dataUrl !== null && { dataUrl }) };
}

/**
 * The data port's URL, for a client that uses the control API at `controlUrl`, which reports `reported`. If the server
 * reports a loopback address, the host of `controlUrl` is used; and https is never replaced by http on the same host.
 */
export function dataUrlFrom(controlUrl: string, reported: unknown): string {
  if (typeof reported !== "string" || !/^https?:\/\//.test(reported) || !URL.canParse(reported)) return atPort(controlUrl, DATA_PORT);
  const url = new URL(exactDataUrl(reported));
  const control = new URL(controlUrl);
  if (isLoopback(url.hostname) && !isLoopback(control.hostname)) url.hostname = control.hostname;
  if (isSameHost(url, control) && control.protocol === "https:" && url.protocol === "http:") {
    // The port stays the same, also if http's default port was omitted.
    return `https://${url.hostname}:${url.port || "80"}${url.pathname.replace(/\/+$/, "")}`;
  }
  return exactUrl(url.href);
}

/** Whether two addresses are on one host, so that a secret for one may be sent to the other. */
export function areOnOneHost(one: string, other: string): boolean {
  return isSameHost(new URL(one), new URL(other));
}

function isSameHost(one: URL, other: URL): boolean {
  return one.hostname === other.hostname || (isLoopback(one.hostname) && isLoopback(other.hostname));
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127(?:\.\d{1,3}){3}$/.test(hostname);
}

/** Scheme, port and path as given, without a slash at the end; http if no scheme is given. */
export function exactUrl(address: string): string {
  const { protocol, host, pathname } = parseAddress(address);
  return `${protocol}//${host}${pathname.replace(/\/+$/, "")}`;
}

/** The given port, else the default one; scheme and path as given. */
function systemControlUrl(address: string): string {
  if (hasPort(address)) return exactUrl(address);
  return atPort(address, CONTROL_PORT) + parseAddress(address).pathname.replace(/\/+$/, "");
}

/** The original's rule, which applies to addresses without a port. */
function defaultDataUrl(address: string | undefined): string | null {
  return address === undefined || hasPort(address) ? null : atPort(address, DATA_PORT);
}

/** Keeps only the scheme and the host. */
function atPort(address: string, port: number): string {
  const { protocol, hostname } = parseAddress(address);
  return `${protocol}//${hostname}:${port}`;
}

/** Also accepts the URL of the MCP endpoint. */
function exactDataUrl(address: string): string {
  return exactUrl(address).replace(/\/mcp$/, "");
}

/** As given; an http URL without a port gets the default port. */
function instanceUrl(address: string): string {
  const url = exactDataUrl(address);
  if (hasPort(address) || url.startsWith("https:")) return url;
  return url.replace(/^(http:\/\/[^/]*)/, `$1:${DATA_PORT}`);
}

/** Tests the text, because `URL` drops the default port of its scheme. */
function hasPort(address: string): boolean {
  return /^[^/]*\/\/[^/]*:\d+(?:[/?#]|$)/.test(withScheme(address));
}

function local(dataUrl: string): Addresses {
  const slot = /^(.*)\/env-instance\/([^/]+)$/.exec(dataUrl);
  if (slot === null) return { mode: "local", dataUrl, sandboxUrl: dataUrl, instanceId: null };
  return { mode: "local", dataUrl, sandboxUrl: slot[1] as string, instanceId: decodeURIComponent(slot[2] as string) };
}

function parseAddress(address: string): URL {
  let url: URL;
  try {
    url = new URL(withScheme(address));
  } catch (cause) {
    throw new ValidationError(`'${address}' is not an address: write a host or a URL such as http://localhost:8081`, { cause });
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw new ValidationError(`'${address}' begins with '${url.protocol}': only http and https can be used`);
  }
  return url;
}

function withScheme(address: string): string {
  const text = address.trim();
  if (text.includes("://")) return text;
  // A bare IPv6 address; with a port it must already be in brackets.
  return /^[\da-f:]*:[\da-f:]*:[\da-f:.]*$/i.test(text) ? `http://[${text}]` : `http://${text}`;
}
