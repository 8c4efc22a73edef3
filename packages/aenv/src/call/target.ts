import { instancePrefix, isLoopback } from "@aenv/contract";
import { callServer, openPlatform, type Platform, type PlatformOptions } from "../platform/platform.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

export interface TargetOptions extends PlatformOptions {
  readonly url?: string;
  readonly instance?: string;
  readonly service?: string;
}

/** What is called: where its routes begin, and the token to show there. */
export interface Target {
  readonly url: string;
  /** Empty for none. */
  readonly apiKey: string;
}

export const DEFAULT_URL = "http://127.0.0.1:8081";

/** A service is found through its server. Otherwise the address is given, or it is the one where `aenv run` serves. */
export async function resolveTarget(options: TargetOptions, terminal: Terminal): Promise<Target> {
  const { service, instance } = options;
  if (service !== undefined) {
    if (options.url !== undefined || instance !== undefined)
      throw new Failure(`--service and --${options.url === undefined ? "instance" : "url"} exclude each other`, { exit: "usage" });
    return serviceTarget(service, options, terminal);
  }
  const base = withoutMcp(options.url ?? terminal.env.DUMMY_INSTANCE_IP ?? DEFAULT_URL);
  const url = instance === undefined ? base : `${base}${instancePrefix(instance)}`;
  return { url, apiKey: options.apiKey ?? (await knownToken(url, options, terminal)) };
}

async function serviceTarget(id: string, options: TargetOptions, terminal: Terminal): Promise<Target> {
  const platform = openPlatform(options, terminal);
  const { service_url: url } = await callServer(terminal, `Looking for ${id}`, () => platform.services.get(id));
  if (!url) throw new Failure(`the server does not say where the service ${id} is`, { hint: "Give its address with --url." });
  const address = withScheme(withoutMcp(url), platform);
  return { url: address, apiKey: isOnHostOf(platform.url, address) ? platform.apiKey : (options.apiKey ?? "") };
}

/**
 * The token of the variables or settings is the platform's. It is shown only to the data port that the platform itself names for this
 * instance or service: another server on the same machine, such as one of `aenv run`, never sees it.
 */
async function knownToken(url: string, options: TargetOptions, terminal: Terminal): Promise<string> {
  const [, kind, id] = /\/env-(instance|service)\/([^/]+)$/.exec(url) ?? [];
  const platform = openPlatform(options, terminal, { timeoutMs: 5_000, maxRetries: 0 });
  if (platform.apiKey === "" || kind === undefined || id === undefined || !isOnHostOf(platform.url, url)) return "";
  try {
    const named = await addressOf(platform, kind, decodeURIComponent(id));
    return named !== null && new URL(named).port === new URL(url).port ? platform.apiKey : "";
  } catch {
    // It is not the platform's, or the platform cannot be asked; then the call itself says what is missing.
    return "";
  }
}

async function addressOf(platform: Platform, kind: string, id: string): Promise<string | null> {
  if (kind === "service") {
    const { service_url: url } = await platform.services.get(id);
    return url ? withScheme(url, platform) : null;
  }
  const { data_url: url } = await platform.scheduler.getInstance(id);
  return typeof url === "string" && url !== "" ? `${url}${instancePrefix(id)}` : null;
}

/** Service records name host and port alone, as the original's do. */
function withScheme(address: string, { url }: Platform): string {
  return address.includes("://") ? address : `${new URL(url).protocol}//${address}`;
}

/** The address for an MCP client leads to the same routes. */
function withoutMcp(url: string): string {
  return url.replace(/\/+$/, "").replace(/\/mcp$/, "");
}

/** On one host, so that what is secret from others may be said to both; this machine's own names are one host. */
export function isOnHostOf(one: string, other: string): boolean {
  const [a, b] = [one, other].map((url) => (URL.canParse(url) ? new URL(url).hostname : ""));
  return a !== undefined && a !== "" && (a === b || (isLoopback(a) && isLoopback(b ?? "")));
}
