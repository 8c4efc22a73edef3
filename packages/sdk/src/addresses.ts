import { ValidationError } from "./errors.ts";
import type { Settings } from "./settings.ts";

const CONTROL_PORT = 8080;
const DATA_PORT = 8081;

export interface AddressOptions {
  /** The platform's host, for example `http://aenv.example`; control is expected on its port 8080, data on 8081. */
  readonly systemUrl?: string;
  /** An environment that runs already, for example what `aenv run` prints; nothing is created then. */
  readonly instanceUrl?: string;
  /** The control API exactly as given: scheme, port and path are kept. */
  readonly controlUrl?: string;
  /** The data plane exactly as given: scheme, port and path are kept. */
  readonly dataUrl?: string;
}

/** Where to knock. No URL ends with a slash. */
export type Addresses =
  | {
      readonly mode: "local";
      readonly dataUrl: string;
      /** The box itself: where it makes and ends instances. */
      readonly boxUrl: string;
      /** The instance's id in the box, or null for the one at the box's root. */
      readonly instanceId: string | null;
    }
  | { readonly mode: "remote"; readonly controlUrl: string; readonly dataUrl: string };

/**
 * An explicit option wins over a variable. `DUMMY_INSTANCE_IP` switches to local mode, unless a control API is named.
 */
export function resolveAddresses(options: AddressOptions, settings: Settings): Addresses {
  const isLocal = options.instanceUrl !== undefined || (settings.dummyInstanceIp !== undefined && options.controlUrl === undefined);
  const system = options.systemUrl ?? settings.dummyInstanceIp ?? settings.systemUrl ?? "http://localhost";
  if (isLocal) {
    if (options.dataUrl !== undefined) return local(exactDataUrl(options.dataUrl));
    return local(options.instanceUrl === undefined ? atPort(system, DATA_PORT) : instanceUrl(options.instanceUrl));
  }
  return {
    mode: "remote",
    controlUrl: options.controlUrl === undefined ? atPort(system, CONTROL_PORT) : exactUrl(options.controlUrl),
    dataUrl: options.dataUrl === undefined ? atPort(system, DATA_PORT) : exactDataUrl(options.dataUrl),
  };
}

/** Options that lead to the same addresses, whatever the variables say by then. */
export function pinAddresses(addresses: Addresses): AddressOptions {
  const { dataUrl } = addresses;
  return addresses.mode === "local" ? { instanceUrl: dataUrl, dataUrl } : { controlUrl: addresses.controlUrl, dataUrl };
}

/** Scheme, port and path as given, without a slash at the end; http if no scheme is given. */
export function exactUrl(address: string): string {
  const { protocol, host, pathname } = parseAddress(address);
  return `${protocol}//${host}${pathname.replace(/\/+$/, "")}`;
}

/** Only the host counts, and https where it was asked for. */
function atPort(address: string, port: number): string {
  const { protocol, hostname } = parseAddress(address);
  return `${protocol}//${hostname}:${port}`;
}

/** The address that an MCP client would be given leads here too. */
function exactDataUrl(address: string): string {
  return exactUrl(address).replace(/\/mcp$/, "");
}

/** As given; a plain host without a port gets the usual one. */
function instanceUrl(address: string): string {
  const url = exactDataUrl(address);
  const hasPort = /^[^/]*\/\/[^/]*:\d+(?:[/?#]|$)/.test(withScheme(address));
  if (hasPort || url.startsWith("https:")) return url;
  return url.replace(/^(http:\/\/[^/]*)/, `$1:${DATA_PORT}`);
}

function local(dataUrl: string): Addresses {
  const seat = /^(.*)\/env-instance\/([^/]+)$/.exec(dataUrl);
  if (seat === null) return { mode: "local", dataUrl, boxUrl: dataUrl, instanceId: null };
  return { mode: "local", dataUrl, boxUrl: seat[1] as string, instanceId: decodeURIComponent(seat[2] as string) };
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
  // A bare IPv6 address; with a port it must stand in brackets already.
  return /^[\da-f:]*:[\da-f:]*:[\da-f:.]*$/i.test(text) ? `http://[${text}]` : `http://${text}`;
}
