import { readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { messageOf, PlatformError, parseBytes, parseDuration } from "@aenv/contract";
import { z } from "zod";
import { dataFolder, homeFolder } from "./folders.ts";

const duration = z.string().refine(isDuration, { message: "must be a duration such as 30m" });
const number = z.coerce.number({ error: "must be a number" });
const port = number.int().min(0).max(65_535);
const flag = z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")]);
const count = number.int().min(0);
const bytes = z.union([z.number().int().min(0), z.string().transform(readBytes)], { error: "must be a size such as 10 GiB" });

/** Everything that can be set, with its default and what it means. */
export const serverConfig = z.strictObject({
  home: z
    .string()
    .default(() => homeFolder(undefined))
    .describe("where the database, bundles and sandboxes are kept"),
  dataDir: z
    .string()
    .default("")
    .describe("where benchmarks' data is kept, which sandboxes are told as AENV_DATA_DIR; data below home unless set"),
  host: z.string().default("127.0.0.1").describe("the address to listen on"),
  controlPort: port.default(8080).describe("control and hub"),
  dataPort: port.default(8081).describe("the gateway to instances"),
  adminPort: port.nullable().default(null).describe("metrics and the configuration, on loopback only; none unless set"),
  publicUrl: z.url().nullable().default(null).describe("the data port's address as clients see it, for agent links"),
  store: z.string().default("").describe("memory:, sqlite:FILE or redis://…; SQLite below home unless set"),
  access: z.enum(["auto", "on", "off"]).default("auto").describe("whether tokens are needed; auto: only beyond loopback"),
  idsAreKeys: flag.default(true).describe("an instance's unguessable id is enough on the data port, as the original's clients need"),
  allowProcessEngine: flag.default(false).describe("let strangers beyond loopback run code in plain processes of this machine"),
  allowedHosts: z.array(z.string()).default([]).describe("names beside loopback's own by which a server on loopback may be addressed"),
  defaultTtl: duration.default("30m").describe("how long an instance lives if nobody says"),
  idleAfter: duration.nullable().default(null).describe("ends instances that nobody has used for so long"),
  startTimeout: duration.default("60s").describe("how long a start may take"),
  poolMin: count.default(1).describe("blank processes that always wait"),
  poolMax: count.default(8).describe("processes that wait at most, of each kind: blank, or ready for one environment"),
  poolPerOwner: count.default(32).describe("processes that wait at most, ready for the environments of one owner"),
  poolTotal: count.default(48).describe("processes that wait at most, in all"),
  maxHosts: count.min(1).default(availableParallelism()).describe("shared processes for each owner and environment"),
  memoryMb: count.min(64).default(2_048).describe("memory of one process"),
  maxInstances: count.min(1).default(25_000).describe("live instances of one owner"),
  createsPerSecond: number.positive().default(2_000).describe("creations a second of one owner"),
  blobBytes: bytes.default(10 * 1024 ** 3).describe("bytes of bundles of one owner"),
  startsAtOnce: count.min(1).default(64).describe("starts that run at the same time; the others wait in turn"),
  verifications: count
    .min(1)
    .default(4)
    .describe("bundles that are verified at the same time when they are published; the others wait in turn"),
  verificationsPerOwner: count.min(1).default(2).describe("the same of one owner"),
  round: duration.default("3s").describe("how often this server says that it lives, and tidies up"),
  silence: duration.default("10s").describe("how long a server on another machine may be silent before it is taken for dead"),
  headersTimeout: duration.default("20s").describe("how long a client may take over a request's headers, or over its first word"),
  requestTimeout: duration.default("30m").describe("how long a client may take over a whole request; an answer may take longer"),
  bodyTimeout: duration
    .default("30s")
    .describe("timeout for a JSON body on the control port; a large one gets more while it arrives at 64 KiB a second"),
  maxConnections: count.min(1).default(20_000).describe("open connections of each port"),
  maxBodyBytes: bytes.nullable().default(null).describe("the largest request through the gateway; none unless set"),
  logLevel: z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info").describe("how much is logged, on stderr"),
  otlpUrl: z.url().nullable().default(null).describe("where traces go, as OTLP over HTTP; none unless set"),
});
export type ServerConfig = z.infer<typeof serverConfig>;

const PREFIX = "AENV_";

/** The environment variable of a setting: `AENV_CONTROL_PORT` of `controlPort`. */
export function variableOf(key: string): string {
  return PREFIX + key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** The variable that names a file with the value of a setting: `AENV_STORE_FILE` of `store`. */
export function fileVariableOf(key: string): string {
  return `${variableOf(key)}_FILE`;
}

/** What the command line says over what the environment says over what the file says. */
export function readServerConfig(options: {
  readonly flags: Readonly<Record<string, unknown>>;
  readonly variables: Readonly<Record<string, string | undefined>>;
  readonly file?: string;
}): ServerConfig {
  const merged = {
    ...(options.file === undefined ? {} : readFile(options.file)),
    ...fromVariables(options.variables),
    ...withoutUndefined(options.flags),
  };
  const parsed = serverConfig.safeParse(merged);
  if (!parsed.success) throw invalid(parsed.error, merged);
  const { store, dataDir } = parsed.data;
  const home = homeFolder(parsed.data.home);
  const config = { ...parsed.data, home, dataDir: dataFolder(dataDir, home) };
  if (statSync(config.dataDir, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new PlatformError("request.invalid", `the server's configuration is wrong: dataDir is ${config.dataDir}; that is not a folder`);
  return { ...config, store: store === "" ? `sqlite:${join(home, "server.db")}` : store };
}

/** The same for people to look at: a password in it is hidden. */
export function shownConfig(config: ServerConfig): Record<string, unknown> {
  const hidden = (text: string) => text.replace(/(:\/\/[^:@/]*):[^@/]*@/, "$1:***@").replace(/([?&]\w*password=)[^&]*/gi, "$1***");
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, typeof value === "string" ? hidden(value) : value]));
}

function fromVariables(variables: Readonly<Record<string, string | undefined>>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const key of Object.keys(serverConfig.shape)) {
    const value = variables[variableOf(key)] || fromValueFile(variables, key);
    if (value === undefined || value === "") continue;
    found[key] = key === "allowedHosts" ? value.split(",") : value;
  }
  return found;
}

/** A value that is not to stand in the environment, where other processes of the same user can read it. */
function fromValueFile(variables: Readonly<Record<string, string | undefined>>, key: string): string | undefined {
  const file = variables[fileVariableOf(key)];
  if (file === undefined || file === "") return undefined;
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch (error) {
    throw new PlatformError("request.invalid", `the file ${file} of ${fileVariableOf(key)} cannot be read: ${messageOf(error)}`);
  }
}

function readFile(file: string): Record<string, unknown> {
  try {
    return JSON.parse(readFileSync(file, "utf8"));
  } catch (error) {
    throw new PlatformError("request.invalid", `the config file ${file} cannot be read: ${messageOf(error)}`);
  }
}

function invalid(error: z.ZodError, given: Readonly<Record<string, unknown>>): PlatformError {
  const problems = error.issues.map((issue) => {
    if (issue.code === "unrecognized_keys")
      return `'${issue.keys.join("', '")}' is not a setting; known are ${Object.keys(serverConfig.shape).join(", ")}`;
    const key = String(issue.path[0] ?? "");
    return `${key} is ${JSON.stringify(given[key])}; ${issue.message}`;
  });
  return new PlatformError("request.invalid", `the server's configuration is wrong: ${problems.join("; ")}`);
}

function withoutUndefined(value: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(value).filter(([, entry]) => entry !== undefined));
}

function isDuration(text: string): boolean {
  try {
    return parseDuration(text) > 0;
  } catch {
    return false;
  }
}

function readBytes(text: string, context: z.core.$RefinementCtx<string>): number {
  try {
    return parseBytes(text);
  } catch (error) {
    context.addIssue({ code: "custom", message: messageOf(error) });
    return z.NEVER;
  }
}
