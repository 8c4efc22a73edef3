import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { isObject } from "@aenv/contract";
import { z } from "zod";
import { Failure } from "./failure.ts";
import { parseJsonFile } from "./json-file.ts";
import type { Terminal } from "./terminal.ts";

/** This command's own settings. What it does not know it keeps: another version may have written it. */
const settings = z
  .looseObject({
    global_mode: z.string(),
    build_config: z
      .looseObject({
        type: z.string(),
        build_args: z.record(z.string(), z.unknown()),
        registry: z.looseObject({ host: z.string(), username: z.string(), password: z.string(), namespace: z.string() }).partial(),
      })
      .partial(),
    storage_config: z.looseObject({ type: z.enum(["local", "aenv_hub"]), custom: z.record(z.string(), z.unknown()) }).partial(),
    logging_config: z.looseObject({ level: z.string(), format: z.string(), file: z.string().nullable(), console: z.boolean() }).partial(),
    hub_config: z.looseObject({ hub_backend: z.string(), api_key: z.string(), timeout: z.number().positive() }).partial(),
    system_url: z.string().nullable(),
    owner: z.string().nullable(),
  })
  .partial();
export type Settings = z.infer<typeof settings>;

export const defaultSettings = {
  global_mode: "local",
  build_config: {
    type: "local",
    build_args: { socket: "unix:///var/run/docker.sock" },
    registry: { host: "docker.io", username: "", password: "", namespace: "aenv" },
  },
  storage_config: { type: "local", custom: { prefix: "~/.aenv/envs" } },
  logging_config: { level: "INFO", format: "%(asctime)s - %(name)s - %(levelname)s - %(message)s", file: null, console: true },
  hub_config: { hub_backend: "https://localhost:8080", api_key: "", timeout: 30 },
  system_url: null,
  owner: null,
} satisfies Settings;

/** The file in use: the first that exists, else the one in the home folder, which is only written when asked for. */
export function settingsPath(terminal: Terminal): { path: string; exists: boolean } {
  const home = join(terminal.env.HOME ?? homedir(), ".aenv/cli_config.json");
  const places = [home, join(terminal.cwd, ".aenv/cli_config.json"), "/etc/aenv/cli_config.json"];
  const found = places.find((place) => existsSync(place));
  return { path: found ?? home, exists: found !== undefined };
}

/** What the file says, without the defaults; an unreadable file is an error and stays as it is. */
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
    { hint: "Correct the file, or begin anew with: aenv config reset" },
  );
}

/** The file's values over the defaults, one by one. */
export function withDefaults(own: Settings): Settings {
  return merge(defaultSettings, own) as Settings;
}

/** Refuses what would make the file unreadable. */
export function checkSettings(value: unknown): Settings {
  const parsed = settings.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new Failure(`${issue?.path.join(".") || "the settings"}: ${issue?.message}`, { exit: "usage" });
}

/** Only the owner may read it, for it may hold a password; written beside and moved, so that it is never half there. */
export function writeSettings(path: string, value: Settings): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}.tmp`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  chmodSync(draft, 0o600);
  renameSync(draft, path);
}

/** Environment variables that win over the file. */
export function overrides(env: Terminal["env"]): { key: string; variable: string; value: string }[] {
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

/** The same value with its secrets made unreadable; empty ones stay empty, so that one sees that nothing is set. */
export function masked(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => masked(each, key));
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, masked(each, name)]));
  return isSecret(key) && typeof value === "string" && value !== "" ? "********" : value;
}

function merge(base: unknown, over: unknown): unknown {
  if (!isObject(base) || !isObject(over)) return over;
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) merged[key] = Object.hasOwn(base, key) ? merge(base[key], value) : value;
  return merged;
}
