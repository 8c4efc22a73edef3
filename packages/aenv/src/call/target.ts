import { instancePrefix, isLoopback, type ServiceRecord, servicePrefix } from "@aenv/contract";
import { callServer, openPlatform, type Platform, type PlatformOptions } from "../platform/platform.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface TargetOptions extends PlatformOptions {
  readonly url?: string;
  readonly instance?: string;
  readonly service?: string;
}

/** What is called: its base URL and the token for it. */
export interface Target {
  readonly url: string;
  /** Empty for none. */
  readonly apiKey: string;
}

export const DEFAULT_URL = "http://127.0.0.1:8081";

/**
 * The address of a service comes from its server, also that of an instance if a server is named. Otherwise the address is given, or it is
 * the default of `aenv run`.
 */
export async function resolveTarget(options: TargetOptions, terminal: Terminal): Promise<Target> {
  const { service, instance } = options;
  if (service !== undefined) {
    if (options.url !== undefined || instance !== undefined)
      throw new Failure(`--service and --${options.url === undefined ? "instance" : "url"} exclude each other`, { exit: "usage" });
    return serviceTarget(service, options, terminal);
  }
  if (options.systemUrl !== undefined && options.url === undefined) {
    if (instance === undefined)
      throw new Failure("--system-url names a server, not what is called", {
        exit: "usage",
        hint: "Name one of its instances with --instance ID or a service with --service NAME. An address of its own is given with --url.",
      });
    return instanceTarget(instance, options, terminal);
  }
  const base = withoutMcp(options.url ?? terminal.env.DUMMY_INSTANCE_IP ?? DEFAULT_URL);
  const url = instance === undefined ? base : `${base}${instancePrefix(instance)}`;
  return { url, apiKey: options.apiKey ?? (await knownToken(url, options, terminal)) };
}

async function instanceTarget(id: string, options: TargetOptions, terminal: Terminal): Promise<Target> {
  const platform = openPlatform(options, terminal);
  const url = await callServer(terminal, `Looking for ${id}`, () => addressOf(platform, "instance", id));
  if (url === null) throw new Failure(`the server returns no address for the instance ${id}`, { hint: "Give its address with --url." });
  return { url, apiKey: isOnHostOf(platform.url, url) ? platform.apiKey : (options.apiKey ?? "") };
}

async function serviceTarget(id: string, options: TargetOptions, terminal: Terminal): Promise<Target> {
  const platform = openPlatform(options, terminal);
  const url = addressIn(await callServer(terminal, `Looking for ${id}`, () => platform.services.get(id)));
  if (!url) throw new Failure(`the server returns no address for the service ${id}`, { hint: "Give its address with --url." });
  const address = withScheme(withoutMcp(url), platform);
  return { url: address, apiKey: isOnHostOf(platform.url, address) ? platform.apiKey : (options.apiKey ?? "") };
}

/**
 * The token of the variables or settings is for the platform. It is sent only to the data port that the platform itself returns for
 * this instance or service, never to another server on the same machine, such as one of `aenv run`.
 */
async function knownToken(url: string, options: TargetOptions, terminal: Terminal): Promise<string> {
  const [, kind, id] = /\/env-(instance|service)\/([^/]+)$/.exec(url) ?? [];
  const platform = openPlatform(options, terminal, { timeoutMs: 5_000, maxRetries: 0 });
  if (platform.apiKey === "" || kind === undefined || id === undefined || !isOnHostOf(platform.url, url)) return "";
  try {
    const named = await addressOf(platform, kind, decodeURIComponent(id));
    return named !== null && new URL(named).port === new URL(url).port ? platform.apiKey : "";
  } catch {
    // It does not belong to the platform, or the platform cannot be reached. If a token is needed, the call fails with that.
    return "";
  }
}

async function addressOf(platform: Platform, kind: string, id: string): Promise<string | null> {
  if (kind === "service") {
    const url = addressIn(await platform.services.get(id));
    return url ? withScheme(url, platform) : null;
  }
  const { data_url: url } = await platform.scheduler.getInstance(id);
  return typeof url === "string" && url !== "" ? `${url}${instancePrefix(id)}` : null;
}

/** Through the platform, if the service's own address is one of a cluster. */
function addressIn({ id, service_url: url, data_url: platform }: ServiceRecord): string | null | undefined {
  return typeof platform === "string" ? `${platform}${servicePrefix(id)}` : url;
}

/** Service records have host and port only, like the original's. */
function withScheme(address: string, { url }: Platform): string {
  return address.includes("://") ? address : `${new URL(url).protocol}//${address}`;
}

/** The URL for MCP clients is the base URL and `/mcp`. */
function withoutMcp(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/mcp$/, "");
}

/** True if both are on one host, so that a token of one may be sent to the other. All loopback names are one host. */
export function isOnHostOf(one: string, other: string): boolean {
  const [a, b] = [one, other].map((url) => (URL.canParse(url) ? new URL(url).hostname : ""));
  return a !== undefined && a !== "" && (a === b || (isLoopback(a) && isLoopback(b ?? "")));
}
