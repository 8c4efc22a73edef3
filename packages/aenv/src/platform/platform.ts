import { HubClient, SchedulerClient, ServiceClient, TokenClient } from "@aenv/sdk";
import type { Command } from "commander";
import { Failure, hintUnlessRepeated, toFailure } from "../terminal/failure.ts";
import { withSpinner } from "../terminal/spinner.ts";
import type { Colors, Terminal } from "../terminal/terminal.ts";
import { defaultSettings, hubTimeoutMs, readSettings, separateHub, settingsPath } from "./settings.ts";

/** What every command takes that asks a server. */
export interface PlatformOptions {
  readonly systemUrl?: string;
  readonly apiKey?: string;
}

/** A server, and those who speak to it. */
export interface Platform {
  readonly url: string;
  /** Where environments are published; the same server unless told otherwise. */
  readonly hubUrl: string;
  readonly apiKey: string;
  /** Who the settings say that the user is; null if they do not. */
  readonly owner: string | null;
  readonly hub: HubClient;
  readonly scheduler: SchedulerClient;
  readonly services: ServiceClient;
  readonly tokens: TokenClient;
}

const DEFAULT_URL = defaultSettings.system_url;
const DEFAULT_PORT = 8080;

export function addPlatformOptions(command: Command): Command {
  return command
    .option("--system-url <url>", `the server; $AENV_SYSTEM_URL, the setting system_url or ${DEFAULT_URL} if not given`)
    .option("--api-key <token>", "the token to show it; $AENV_API_KEY or the setting hub_config.api_key if not given");
}

/** A command to run next, at the same server as this one: what came by a flag must be given again. A token is never printed. */
export function nextCommand(command: string, { systemUrl, apiKey }: PlatformOptions, colors: Colors): string {
  const at = systemUrl ? ` --system-url ${systemUrl}` : "";
  return `${command}${at}${apiKey ? colors.dim("  (with the same --api-key)") : ""}`;
}

/** The server that the options, else the variables, else the settings name. Nothing is asked yet. */
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
    tokens: new TokenClient(url, clients),
  };
}

/** Does something with the server; what goes wrong is told with the next step. */
export async function callServer<T>(terminal: Terminal, label: string, work: () => Promise<T>): Promise<T> {
  try {
    return await withSpinner(terminal, label, work);
  } catch (error) {
    throw withServerHint(error);
  }
}

/** The failure with the next step of someone who asked a server. */
export function withServerHint(error: unknown): Failure {
  const { problems, exit, code, hint, cause } = toFailure(error);
  if (error instanceof Failure && hint !== undefined) return error;
  return new Failure(problems, { exit, code, hint: hintUnlessRepeated(problems[0]?.message ?? "", hints[code]), cause });
}

const hints: Readonly<Record<string, string>> = {
  "network.failed":
    "Is a server running there? Start one with: aenv server\nOr say where it is: --system-url, AENV_SYSTEM_URL, or aenv config set system_url http://…:8080",
  "request.timeout": "The server is there but did not answer in time; its own log says more.",
  "access.unauthenticated": "Give a token with --api-key or AENV_API_KEY, or keep one with: aenv login",
  "access.denied": "Use a token that has the role; an administrator makes one with: aenv token create",
  "access.token_not_found": "See which there are with: aenv token list",
  "environment.not_found": "See what there is with: aenv list",
  "environment.exists": 'A published version never changes: raise "version" in config.json, or push with --version.',
  "environment.in_use": "See what runs with: aenv instance list --name NAME",
  "instance.not_found": "See what runs with: aenv instance list",
  "instance.gone": "It has ended; its story is told for ten minutes by: aenv instance events ID",
  "instance.failed": "Read what happened with: aenv instance events ID",
  "instance.start_failed": "Read what the server says with: aenv instance list --status Failed",
  "service.not_found": "See which there are with: aenv service list",
  "service.exists": "Choose another name with: --service-name NAME",
  "quota.exceeded": "End what you no longer need with: aenv instance delete ID",
};

/** A port that is given counts; the scheme does too. The rest is as the original's clients read it: a host. */
export function controlUrl(address: string): string {
  const text = address.includes("://") ? address.trim() : `http://${address.trim()}`;
  const parsed = URL.canParse(text) ? new URL(text) : null;
  if (parsed === null || !/^https?:$/.test(parsed.protocol)) {
    throw new Failure(`'${address}' is not the address of a server`, { exit: "usage", hint: `Write it as: --system-url ${DEFAULT_URL}` });
  }
  const port = /^\w+:\/\/[^/?#]*:(\d+)(?:[/?#]|$)/.exec(text)?.[1] ?? String(DEFAULT_PORT);
  return `${parsed.protocol}//${parsed.hostname}:${port}${parsed.pathname.replace(/\/+$/, "")}`;
}
