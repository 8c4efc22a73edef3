import { HubClient, SchedulerClient, ServiceClient, SnapshotClient, TokenClient } from "@aenv/sdk";
import type { Command } from "commander";
import { Failure, hintUnlessRepeated, toFailure } from "../terminal/failure.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";
import { defaultSettings, hubTimeoutMs, readSettings, separateHub, settingsPath } from "./settings.ts";

/** The options of every command that uses a server. */
export interface PlatformOptions {
  readonly systemUrl?: string;
  readonly apiKey?: string;
}

/** A server and its clients. */
export interface Platform {
  readonly url: string;
  /** The hub; the same server unless the settings name another. */
  readonly hubUrl: string;
  readonly apiKey: string;
  /** The setting `owner`; null if it is not set. */
  readonly owner: string | null;
  readonly hub: HubClient;
  readonly scheduler: SchedulerClient;
  readonly services: ServiceClient;
  readonly snapshots: SnapshotClient;
  readonly tokens: TokenClient;
}

const DEFAULT_URL = defaultSettings.system_url;
const DEFAULT_PORT = 8080;

export function addPlatformOptions(command: Command): Command {
  return command
    .option("--system-url <url>", `the server; $AENV_SYSTEM_URL, the setting system_url or ${DEFAULT_URL} if not given`)
    .option("--api-key <token>", "the token for the server; $AENV_API_KEY or the setting hub_config.api_key if not given");
}

/** A command to run next on the same server: with the same --system-url, and a note if --api-key was given. A token is never printed. */
export function nextCommand(command: string, { systemUrl, apiKey }: PlatformOptions, colors: Colors): string {
  const at = systemUrl ? ` --system-url ${systemUrl}` : "";
  return `${command}${at}${apiKey ? colors.dim("  (with the same --api-key)") : ""}`;
}

/** The server that the options, else the variables, else the settings name. Sends no request. */
export function openPlatform(
  options: PlatformOptions,
  terminal: Terminal,
  limits: { readonly timeoutMs?: number; readonly maxRetries?: number } = {},
): Platform {
  const { env } = terminal;
  const settings = readSettings(settingsPath(terminal).path);
  const { hub_config: hub = {} } = settings;
  const url = controlUrl(options.systemUrl || env.AENV_SYSTEM_URL || settings.system_url || DEFAULT_URL);
  const hubUrl = options.systemUrl ? url : env.HUB_BACKEND || separateHub(settings) || url;
  const apiKey = options.apiKey || env.AENV_API_KEY || hub.api_key || "";
  const { timeoutMs = hubTimeoutMs(settings), maxRetries = 2 } = limits;
  const clients = { apiKey, timeoutMs, maxRetries };
  return {
    url,
    hubUrl,
    apiKey,
    owner: settings.owner ?? null,
    hub: new HubClient(hubUrl, clients),
    scheduler: new SchedulerClient(url, clients),
    services: new ServiceClient(url, clients),
    snapshots: new SnapshotClient(url, clients),
    tokens: new TokenClient(url, clients),
  };
}

/** Sends requests to the server and shows a spinner meanwhile. Errors come with a hint. */
export async function callServer<T>(terminal: Terminal, label: string, work: () => Promise<T>): Promise<T> {
  try {
    return await withSpinner(terminal, label, work);
  } catch (error) {
    throw withServerHint(error);
  }
}

/** The error as a failure, with the hint for errors of a server. */
export function withServerHint(error: unknown): Failure {
  const { problems, exit, code, hint, cause } = toFailure(error);
  if (error instanceof Failure && hint !== undefined) return error;
  const message = problems[0]?.message ?? "";
  // Its message says what to do.
  const isSnapshotQuota = code === "quota.exceeded" && message.includes("snapshot");
  return new Failure(problems, { exit, code, hint: isSnapshotQuota ? undefined : hintUnlessRepeated(message, hints[code]), cause });
}

const hints: Readonly<Record<string, string>> = {
  "network.failed":
    "Is a server running there? Start one with: aenv server\nOr give its address: --system-url, AENV_SYSTEM_URL, or aenv config set system_url http://…:8080",
  "request.timeout": "The server did not answer in time; read its log.",
  "access.unauthenticated": "Give a token with --api-key or AENV_API_KEY, or store one with: aenv login",
  "access.denied": "Use a token that has the role; an administrator creates one with: aenv token create",
  "access.token_not_found": "List them with: aenv token list",
  "environment.not_found": "List them with: aenv list",
  "environment.exists": 'A published version never changes: raise "version" in config.json, or push with --version.',
  "environment.in_use": "List its instances with: aenv instance list --name NAME",
  "instance.not_found": "List them with: aenv instance list",
  "instance.gone": "The instance has ended. For ten minutes, its events are shown by: aenv instance events ID",
  "instance.failed": "Read its events with: aenv instance events ID",
  "instance.start_failed": "Find the reason with: aenv instance list --status Failed",
  "service.not_found": "List them with: aenv service list",
  "service.exists": "Choose another name with: --service-name NAME",
  "snapshot.not_found": "List them with: aenv snapshot list",
  "snapshot.exists": "Choose another name with --name, or delete the other one with: aenv snapshot delete NAME",
  "quota.exceeded": "Delete instances that you no longer need with: aenv instance delete ID",
};

/** The address with its scheme and port, or with the defaults for them. A bare host is accepted, as by the original's clients. */
export function controlUrl(address: string): string {
  const text = address.includes("://") ? address.trim() : `http://${address.trim()}`;
  const parsed = URL.canParse(text) ? new URL(text) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new Failure(`'${address}' is not the address of a server`, { exit: "usage", hint: `Write it as: --system-url ${DEFAULT_URL}` });
  }
  const port = /^\w+:\/\/[^/?#]*:(\d+)(?:[/?#]|$)/.exec(text)?.[1] ?? String(DEFAULT_PORT);
  return `${parsed.protocol}//${parsed.hostname}:${port}${parsed.pathname.replace(/\/+$/, "")}`;
}
