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
    const given = options.dataUrl ?? options.instanceUrl;
    return local(given === undefined ? atPort(system, DATA_PORT) : asGiven(given, DATA_PORT));
  }
  return {
    mode: "remote",
    controlUrl: options.controlUrl === undefined ? atPort(system, CONTROL_PORT) : asGiven(options.controlUrl, CONTROL_PORT),
    dataUrl: options.dataUrl === undefined ? atPort(system, DATA_PORT) : asGiven(options.dataUrl, DATA_PORT),
  };
}

/** Only the host counts, and https where it was asked for. */
export function atPort(address: string, port: number): string {
  const url = parseAddress(address);
  return `${url.protocol}//${url.hostname || "127.0.0.1"}:${port}`;
}

/** Kept as it is; a plain host without a port gets the usual one, and MCP's own path is cut off. */
export function asGiven(address: string, usualPort: number): string {
  const url = parseAddress(address);
  const hasPort = /^[^/]*\/\/[^/]*:\d+(?:[/?#]|$)/.test(withScheme(address));
  const port = hasPort || url.protocol === "https:" ? "" : `:${usualPort}`;
  const path = url.pathname.replace(/\/+$/, "").replace(/\/mcp$/, "");
  return `${url.protocol}//${url.host}${port}${path}`;
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
