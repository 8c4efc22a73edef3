import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { formatDuration, isObject, parseDuration } from "@aenv/contract";
import { z } from "zod";
import { parseJsonFile } from "../project/json-file.ts";
import { Failure } from "../terminal/failure.ts";
import type { Terminal } from "../terminal/terminal.ts";

/** A number of seconds, as the original's command writes it, or a duration such as `90s`. */
const DURATION_ERROR = { error: "must be a duration such as 30s" };
const timeout = z.union([z.number().positive(DURATION_ERROR), z.string().refine(isDuration, DURATION_ERROR)], DURATION_ERROR);

/** Where `aenv build --image` pushes to. */
const registry = z.looseObject({ host: z.string(), namespace: z.string(), username: z.string(), password: z.string() });

/** Where the original's command looks for Docker. */
const DEFAULT_SOCKET = "unix:///var/run/docker.sock";
const buildConfig = z.looseObject({ build_args: z.looseObject({ socket: z.string() }).partial(), registry: registry.partial() });

/** The settings of this command. Other fields of the file are kept: the original's command may use them. */
const settings = z
  .looseObject({
    system_url: z.string().nullable(),
    owner: z.string().nullable(),
    hub_config: z.looseObject({ hub_backend: z.string().nullable(), api_key: z.string(), timeout }).partial(),
    build_config: buildConfig.partial(),
  })
  .partial();
export type Settings = z.infer<typeof settings>;

/** Every setting that has an effect, with its default. */
export const defaultSettings = {
  system_url: "http://localhost:8080",
  owner: null,
  hub_config: { hub_backend: null, api_key: "", timeout: "30s" },
  build_config: {
    build_args: { socket: DEFAULT_SOCKET },
    registry: { host: "docker.io", namespace: "", username: "", password: "" },
  },
} satisfies Settings;

/** The default that the original's command writes into every new file; it does not name a hub. */
const ORIGINAL_HUB = "https://localhost:8080";

/** The hub, if the settings name one that is not the server. */
export function separateHub({ hub_config: hub = {} }: Settings): string | null {
  return !hub.hub_backend || hub.hub_backend === ORIGINAL_HUB ? null : hub.hub_backend;
}

export function hubTimeoutMs({ hub_config: hub = {} }: Settings): number {
  const { timeout: given = defaultSettings.hub_config.timeout } = hub;
  return typeof given === "number" ? given * 1_000 : parseDuration(given);
}

/** The socket of Docker, if the settings name another than Docker's own default. */
export function dockerHost({ build_config: build = {} }: Settings): string | null {
  const { socket = DEFAULT_SOCKET } = build.build_args ?? {};
  return socket === DEFAULT_SOCKET || socket === "" ? null : socket;
}

/** Only the settings that have an effect here; a file of the original's command has more. */
export function effectiveSettings(own: Settings): Settings {
  const { system_url, owner, hub_config, build_config } = withDefaults(own);
  const { hub_backend: _, api_key = "" } = hub_config ?? {};
  const { socket = "" } = build_config?.build_args ?? {};
  const { host = "", namespace = "", username = "", password = "" } = build_config?.registry ?? {};
  return {
    system_url,
    owner,
    hub_config: { hub_backend: separateHub(own), api_key, timeout: formatDuration(hubTimeoutMs(own)) },
    build_config: { build_args: { socket }, registry: { host, namespace, username, password } },
  };
}

/** Top-level names of the file that have no effect here. */
export function unusedSettings(own: Settings): string[] {
  return Object.keys(own).filter((name) => !Object.hasOwn(defaultSettings, name));
}

/** The file in use: the first that exists, else the one in the home folder, which is created by the first write. */
export function settingsPath(terminal: Terminal): { path: string; exists: boolean } {
  const home = join(terminal.env.HOME ?? homedir(), ".aenv/cli_config.json");
  const places = [home, join(terminal.cwd, ".aenv/cli_config.json"), "/etc/aenv/cli_config.json"];
  const found = places.find((place) => existsSync(place));
  return { path: found ?? home, exists: found !== undefined };
}

/** The settings of the file, without the defaults. An invalid file is an error and is not changed. */
export function readSettings(path: string): Settings {
  if (!existsSync(path)) return {};
  const { value, placeOf } = parseJsonFile(path, readFileSync(path, "utf8"));
  const parsed = settings.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new Failure(
    parsed.error.issues.map((issue) => ({
      message: `${issue.path.join(".")}: ${issue.message}`,
      place: placeOf(issue.path as (string | number)[]),
    })),
    { hint: "Correct the file, or restore the defaults with: aenv config reset" },
  );
}

/** The file's values over the defaults, one by one. */
export function withDefaults(own: Settings): Settings {
  return merge(defaultSettings, own) as Settings;
}

/** Throws if the value is not valid as settings. */
export function checkSettings(value: unknown): Settings {
  const parsed = settings.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Failure(`${issue?.path.join(".") || "the settings"}: ${issue?.message}`, { exit: "usage" });
}

/** Only the user may read the file, because it may contain a token. It is written to a temporary file and renamed, so that it is never incomplete. */
export function writeSettings(path: string, value: Settings): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

/** Environment variables that override the file. */
export function variableOverrides(env: Terminal["env"]): { key: string; variable: string; value: string }[] {
  const known = [
    { key: "hub_config.hub_backend", variable: "HUB_BACKEND" },
    { key: "system_url", variable: "AENV_SYSTEM_URL" },
    { key: "hub_config.api_key", variable: "AENV_API_KEY" },
  ];
  return known.flatMap((each) => (env[each.variable] ? [{ ...each, value: env[each.variable] as string }] : []));
}

const SECRET = /password|api_?key|token|secret/i;

export function isSecret(key: string): boolean {
  return SECRET.test(key.split(".").at(-1) ?? "");
}

/** The value with its secrets masked. An empty secret stays empty, which shows that it is not set. */
export function maskSecrets(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => maskSecrets(each, key));
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, maskSecrets(each, name)]));
  return isSecret(key) && typeof value === "string" && value !== "" ? "********" : value;
}

function isDuration(text: string): boolean {
  try {
    return parseDuration(text) > 0;
  } catch {
    return false;
  }
}

function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = Object.hasOwn(base, key) ? merge(base[key], value) : value;
  return merged;
}
