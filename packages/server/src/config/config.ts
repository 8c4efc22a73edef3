import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import {
  type EgressPolicy,
  egressPolicy,
  type Limit,
  messageOf,
  PlatformError,
  parseBytes,
  parseDuration,
  parseIpv4Network,
  type Resources,
} from "@aenv/contract";
import { DEFAULT_ENGINE, engineNames, engines } from "@aenv/sandbox/engines";
import { z } from "zod";
import { dataFolder, homeFolder } from "./folders.ts";

const duration = z.string().refine(isDuration, { message: "must be a duration such as 30m" });
const number = z.coerce.number({ error: "must be a number" });
const port = number.int().min(0).max(65_535);
const flag = z.union([z.boolean(), z.enum(["true", "false"]).transform((text) => text === "true")]);
const count = number.int().min(0);
const bytes = z.union([z.number().int().min(0), z.string().transform(readBytes)], { error: "must be a size such as 10 GiB" });

const CHOICES = new Intl.ListFormat("en-GB", { type: "disjunction" });
const LINK_URL = /^https?:\/\/\*(?:\.[a-z0-9-]+)+(?::\d{1,5})?\/?$/i;

/** The memory limit of a process, if the operator has set none. */
export const DEFAULT_MEMORY_MB = 2_048;

/** Those that limit every sandbox, by the names of the limits. */
const resourceSettings = {
  memoryMb: count
    .min(64)
    .nullable()
    .default(null)
    .describe(`memory limit of one process, in MiB; default: ${DEFAULT_MEMORY_MB}, and with kubernetes that of the pod template`),
  cpus: number.positive().nullable().default(null).describe("processors that one sandbox may use, also a fraction; unlimited by default"),
  diskMb: count.min(16).nullable().default(null).describe("how much a sandbox may write to its files, in MiB; unlimited by default"),
  processes: count
    .min(16)
    .nullable()
    .default(null)
    .describe("most processes and threads of one sandbox; default: 1024 with oci and docker"),
} satisfies Partial<Record<Limit, z.ZodType<number | null>>>;

export const resourceSettingNames = Object.keys(resourceSettings) as (keyof typeof resourceSettings)[];

/** Every setting with its default and description. */
export const serverConfig = z.strictObject({
  home: z
    .string()
    .default(() => homeFolder(undefined))
    .describe("folder of the database, the bundles and the sandboxes"),
  dataDir: z
    .string()
    .default("")
    .describe("folder of the benchmarks' data, passed to sandboxes as AENV_DATA_DIR; default: data below home"),
  host: z.string().default("127.0.0.1").describe("address to listen on"),
  controlPort: port.default(8080).describe("port of the control API and the hub"),
  dataPort: port.default(8081).describe("port of the gateway to instances"),
  workers: count
    .min(1)
    .max(256)
    .nullable()
    .default(null)
    .describe("processes that serve the data port, at most 16 by default; with 1, it is the server's own process"),
  adminPort: port
    .nullable()
    .default(null)
    .describe("port of the metrics and the configuration on loopback, with the tokens of the control port; none by default"),
  publicUrl: z.url().nullable().default(null).describe("URL of the data port as clients reach it, used in agent links"),
  linkUrl: z
    .string()
    .regex(LINK_URL, { message: "must be a URL such as https://*.links.example" })
    .nullable()
    .default(null)
    .describe(
      "URL of links to ports, as https://*.links.example: each link gets a host name of its own, so that browsers keep their pages apart; default: names below localhost on loopback, else paths of the data port",
    ),
  store: z.string().default("").describe("memory:, sqlite:FILE or redis://…; default: SQLite below home"),
  access: z
    .enum(["auto", "on", "off"])
    .default("auto")
    .describe("whether tokens are required; auto: only if the server listens beyond loopback"),
  adminToken: z
    .string()
    .nullable()
    .default(null)
    .describe("the administrator's token, as aenv_ID_SECRET; another value revokes the earlier one; default: created at the first start"),
  metricsToken: z
    .string()
    .regex(/^[\x21-\x7e]{20,512}$/, { message: "must have 20 to 512 characters without spaces" })
    .nullable()
    .default(null)
    .describe(
      "a token for Prometheus, which opens /metrics and nothing else; if it is set, /metrics needs a token also where access is off",
    ),
  idsAreKeys: flag
    .default(true)
    .describe(
      "accept an instance's unguessable id instead of a token on the data port, as the original's clients require, while the token that created the instance is valid",
    ),
  engine: z
    .enum(engineNames)
    .default(DEFAULT_ENGINE)
    .describe(`what isolates instances: ${CHOICES.format(engineNames.map((name) => `${name} (${engines[name].summary})`))}`),
  runtime: z
    .enum(["runc", "runsc"])
    .default("runc")
    .describe(
      "how sandboxes are run: runc (fast, the kernel of this machine; with docker: the daemon's default) or runsc (gVisor, a kernel of its own)",
    ),
  sandboxUsers: z
    .enum(["own", "machine"])
    .default("own")
    .describe(
      "users of sandboxes with oci and runc: own (not users of the machine, where its kernel and file systems can do it) or machine (root is root, behind the other walls)",
    ),
  runcOwners: z
    .array(z.string())
    .default([])
    .describe(
      "owners that may use runc: an instance runs with it if its owner and the publisher of its environment are listed, else with runsc; default: all owners if runtime is runc, else none",
    ),
  dockerSocket: z.string().default("/var/run/docker.sock").describe("socket of Docker or Podman, for the engine docker"),
  kubeconfig: z
    .string()
    .nullable()
    .default(null)
    .describe("kubeconfig file of the engine kubernetes; default: the file of KUBECONFIG, or in a cluster the account of the server's pod"),
  kubeServer: z
    .string()
    .nullable()
    .default(null)
    .describe("host:port of the API server for a server in the cluster; default: what Kubernetes tells every pod"),
  kubeNamespace: z.string().default("aenv-sandbox").describe("namespace of the pods that the engine kubernetes creates"),
  kubeGroup: z
    .string()
    .nullable()
    .default(null)
    .describe("servers with the same name look after the same pods; default: a random name in the home"),
  initKeyFile: z
    .string()
    .nullable()
    .default(null)
    .describe("file with the ed25519 private key (PEM) for the inits of pods, for servers of one kubeGroup; default: one of the home"),
  kubeNetworkPolicies: flag
    .default(true)
    .describe("restrict outgoing connections of pods by a network policy, which the network of the cluster must enforce"),
  baseImage: z
    .string()
    .nullable()
    .default(null)
    .describe("image of pods without one: Node, the runner and the init, as deploy/images builds it"),
  podTemplates: z.string().nullable().default(null).describe("folder with pod templates, as NAME.yaml, for the engine kubernetes"),
  kubeDomainSuffix: z
    .string()
    .default("svc.cluster.local")
    .describe("what follows the namespace in the addresses of services with the engine kubernetes"),
  runscClass: z.string().nullable().default(null).describe("RuntimeClass of gVisor, for the engine kubernetes; none by default"),
  nodeWait: duration.default("5s").describe("how long a pod may wait for a node with capacity, such as one that an autoscaler adds"),
  runc: z
    .string()
    .nullable()
    .default(null)
    .describe("program for sandboxes with runc, such as /usr/sbin/runc; default: crun if it starts a sandbox here, else runc, on the PATH"),
  runsc: z.string().nullable().default(null).describe("path of the program runsc; default: on the PATH"),
  sandboxesReady: count
    .default(1)
    .describe(
      "sandboxes of each image in use that the engine oci prepares, and as many without an image, at most poolTotal together, and pods that the engine kubernetes keeps waiting; with kubernetes, up to poolMax of each by demand",
    ),
  registryAuth: z
    .string()
    .nullable()
    .default(null)
    .describe(
      "file with the credentials of image registries, in the format of docker login, which images of all owners are pulled with; none by default",
    ),
  imageStore: z
    .string()
    .nullable()
    .default(null)
    .describe("folder of the engine oci's images, which several servers of this machine can share; default: below home"),
  imageRegistries: z
    .array(z.string())
    .default([])
    .describe(
      "image registries, and their token servers and storages, that may be on private addresses or this machine, as host or host:port; others must be on public addresses",
    ),
  imageBytes: bytes
    .default(128 * 1024 ** 3)
    .describe("most bytes that the layers of an image may have unpacked, for the engine oci; one layer may have half of it"),
  imageEntries: count
    .min(2)
    .default(2_000_000)
    .describe("most files, folders and links that the layers of an image may have, for the engine oci; one layer may have half of it"),
  minFreeDisk: bytes
    .nullable()
    .default(null)
    .describe(
      "what stays free on the disk while the engine oci unpacks images and snapshots; by default a twentieth of the disk, at least 1 GiB and at most 16 GiB",
    ),
  insecureRegistries: z
    .array(z.string())
    .default([])
    .describe(
      "image registries without a valid certificate, as host:port, for the engine oci; they count as listed in imageRegistries; Docker has its own setting insecure-registries, and so have the nodes of a cluster",
    ),
  allowProcessEngine: flag.default(false).describe("allow clients beyond loopback to run code in plain processes of this machine"),
  processCommands: flag
    .default(false)
    .describe("start an init beside each plain process, so that its owner can run commands and access files there"),
  commandsPerInstance: count.min(1).default(64).describe("most concurrent commands in one instance's sandbox"),
  taskSandboxesPerInstance: count
    .min(1)
    .default(32)
    .describe("most sandboxes that the code of one instance may have open at a time; a reset has those of two episodes open"),
  maxTaskSandboxes: count
    .min(1)
    .default(1_000)
    .describe("most sandboxes that the code of one owner's instances may have open on this server"),
  taskMemoryTotalMb: count
    .min(64)
    .nullable()
    .default(null)
    .describe(
      "memory of all sandboxes together that the code of instances may open, in MiB; an instance whose first sandbox does not fit is refused for now; unlimited by default",
    ),
  taskMemoryMb: count.min(16).default(16_384).describe("most memory of a sandbox that the code of an instance opens, in MiB"),
  taskCapabilities: z
    .enum(["minimal", "mapped", "docker"])
    .default("mapped")
    .describe(
      "what root may do at most in sandboxes that the code of an instance opens: minimal (its own files, users and processes), mapped (what Docker allows, where root of a sandbox is not root of this machine) or docker (the same with every root)",
    ),
  commandTimeout: duration.default("1h").describe("longest time of a command in a sandbox, and the default"),
  allowedHosts: z.array(z.string()).default([]).describe("additional Host names that a server on loopback accepts"),
  defaultTtl: duration.default("30m").describe("lifetime of an instance if the request sets none"),
  idleAfter: duration.nullable().default(null).describe("instances that are unused for this long are ended; none by default"),
  egressLimit: z
    .string()
    .refine((text) => parseEgressLimit(text) !== null, { message: "must be none, open, or destinations separated by commas" })
    .default("open")
    .describe(
      "where sandboxes may connect to at most: none, open, or destinations such as *.example.com:443 and 10.1.0.0/16, separated by commas",
    ),
  sandboxSubnet: z
    .string()
    .refine(isSubnet, { message: "must be an IPv4 network from /10 to /29, such as 172.30.0.0/16" })
    .nullable()
    .default(null)
    .describe(
      "addresses of the sandboxes of the engines oci and docker, such as 172.30.0.0/16; default: a network in 10.64.0.0/10 that no route of this machine uses",
    ),
  secretsDir: z
    .string()
    .nullable()
    .default(null)
    .describe("folder with the secrets of owners, as files OWNER/NAME that only the operator writes; none by default"),
  freezeAfter: duration
    .nullable()
    .default(null)
    .describe("sandboxes of instances that are unused for this long are frozen until the next call; none by default"),
  minAvailableMemoryMb: count
    .default(256)
    .describe("starts are queued while the machine has less available memory than this, in MiB; 0: never"),
  startTimeout: duration.default("60s").describe("timeout of a start"),
  poolMin: count.default(1).describe("blank processes that are always kept ready"),
  poolMax: count.default(8).describe("most ready processes of each kind: blank, or prepared for one environment"),
  poolPerOwner: count.default(32).describe("most ready processes prepared for the environments of one owner"),
  poolTotal: count.default(48).describe("most ready processes in total, and most prepared sandboxes"),
  maxHosts: count
    .min(1)
    .nullable()
    .default(null)
    .describe("most shared processes per owner and environment; default: one per core, and with kubernetes one pod per 64 instances"),
  ...resourceSettings,
  maxInstances: count.min(1).default(25_000).describe("most live instances of one owner"),
  createsPerSecond: number.positive().default(2_000).describe("most creations per second of one owner"),
  blobBytes: bytes.default(10 * 1024 ** 3).describe("storage quota for the bundles of one owner"),
  maxSnapshots: count.min(1).default(1_000).describe("most stored snapshots of one owner"),
  snapshotBytes: bytes.default(20 * 1024 ** 3).describe("storage quota for the snapshots of one owner"),
  snapshotSpaceMb: count
    .min(64)
    .default(20_480)
    .describe(
      "disk space of the engine oci for snapshots of files and memory, also those of forks and warm starts, in MiB; copies of stored snapshots that are not in use give way",
    ),
  startsAtOnce: count.min(1).default(64).describe("most concurrent starts; further ones are queued"),
  verifications: count.min(1).default(4).describe("most concurrent verifications of published bundles; further ones are queued"),
  verificationsPerOwner: count.min(1).default(2).describe("most concurrent verifications of one owner"),
  rolloutsAtOnce: count
    .min(1)
    .default(256)
    .describe(
      "concurrent rollouts of this server, fairly between owners; up to as many more of owners that have less than a sixteenth, so that none waits for what another one's hang",
    ),
  maxRollouts: count.min(1).default(100_000).describe("most unfinished rollouts of one owner"),
  rolloutModels: z
    .array(z.string())
    .default([])
    .describe(
      "model endpoints that rollouts and the code of environments may call: loopback, private, public, hosts, address ranges, beginnings of URLs; default: all three on loopback, else public",
    ),
  rolloutResultsKept: duration.default("24h").describe("how long results of rollouts are kept"),
  rolloutRequestBytes: bytes.default(256 * 1024 ** 2).describe("most bytes of the requests of one owner's unfinished rollouts"),
  rolloutResultBytes: bytes
    .default(2 * 1024 ** 3)
    .describe("most bytes of all results of rollouts; the oldest of owners with the most bytes are removed first"),
  rolloutResultBytesPerOwner: bytes.default(1024 ** 3).describe("most bytes of one owner's results; the oldest are removed first"),
  round: duration.default("3s").describe("interval of the heartbeat and of maintenance"),
  silence: duration.default("10s").describe("a server on another machine without a heartbeat for this long is considered dead"),
  drainTime: duration
    .nullable()
    .default(null)
    .describe("how long a server that is stopped goes on serving, while its clients and load balancers move to others; none by default"),
  headersTimeout: duration.default("20s").describe("timeout for the request headers, also for the first bytes of a connection"),
  requestTimeout: duration.default("30m").describe("timeout for receiving a whole request; the response may take longer"),
  bodyTimeout: duration
    .default("30s")
    .describe("timeout for a JSON body on the control port; a large one gets more while it arrives at 64 KiB a second"),
  maxConnections: count.min(1).default(20_000).describe("most open connections per port"),
  maxBodyBytes: bytes.nullable().default(null).describe("largest request body through the gateway; unlimited by default"),
  logLevel: z.enum(["trace", "debug", "info", "warn", "error", "silent"]).default("info").describe("log level; logs go to stderr"),
  otlpUrl: z.url().nullable().default(null).describe("URL of an OTLP collector (HTTP) for traces; none by default"),
});
export type ServerConfig = z.infer<typeof serverConfig>;

/** The limits of sandboxes whose environment asks for no others. The engine's own memory limit holds unless the operator has chosen another one. */
export function resourcesOf(config: ServerConfig, { ownMemory }: { readonly ownMemory: boolean }): Resources {
  const chosen = Object.fromEntries(resourceSettingNames.flatMap((name) => (config[name] === null ? [] : [[name, config[name]]])));
  return ownMemory ? chosen : { memoryMb: DEFAULT_MEMORY_MB, ...chosen };
}

/** Null if the text is no policy. */
export function parseEgressLimit(text: string): EgressPolicy | null {
  const parsed = egressPolicy.safeParse(text === "none" || text === "open" ? text : { allow: text.split(",").map((one) => one.trim()) });
  return parsed.success ? parsed.data : null;
}

function isSubnet(text: string): boolean {
  const prefix = parseIpv4Network(text)?.prefix ?? 32;
  return prefix >= 10 && prefix <= 29;
}

const PREFIX = "AENV_";
/** Settings with several values, which a variable separates by commas. */
const LISTS: ReadonlySet<string> = new Set(["allowedHosts", "imageRegistries", "insecureRegistries", "rolloutModels", "runcOwners"]);

/** The environment variable of a setting: `AENV_CONTROL_PORT` of `controlPort`. */
export function variableOf(key: string): string {
  return PREFIX + key.replace(/[A-Z]/g, (letter) => `_${letter}`).toUpperCase();
}

/** The variable that names a file with the value of a setting: `AENV_STORE_FILE` of `store`. */
export function fileVariableOf(key: string): string {
  return `${variableOf(key)}_FILE`;
}

/** Flags override environment variables, which override the file. */
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
  const { store, dataDir, kubeconfig, kubeServer } = parsed.data;
  const { KUBECONFIG, KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = options.variables;
  const home = homeFolder(parsed.data.home);
  const config = {
    ...parsed.data,
    home,
    dataDir: dataFolder(dataDir, home),
    kubeconfig: kubeconfig ?? (KUBECONFIG || null),
    kubeServer: kubeServer ?? (host ? `${host.includes(":") ? `[${host}]` : host}:${port}` : null),
  };
  if (statSync(config.dataDir, { throwIfNoEntry: false })?.isDirectory() === false)
    throw new PlatformError("request.invalid", `the server's configuration is wrong: dataDir is ${config.dataDir}, which is not a folder`);
  return { ...config, store: store === "" ? `sqlite:${join(home, "server.db")}` : store };
}

/** Settings that are never shown. */
const SECRETS: ReadonlySet<string> = new Set(["adminToken", "metricsToken"] satisfies (keyof ServerConfig)[]);

/** The configuration for display, with passwords hidden. */
export function shownConfig(config: ServerConfig): Record<string, unknown> {
  const hidden = (text: string) => text.replace(/(:\/\/[^:@/]*):[^@/]*@/, "$1:***@").replace(/([?&]\w*password=)[^&]*/gi, "$1***");
  const shown = Object.entries(config).map(([key, value]) => [key, typeof value === "string" ? hidden(value) : value]);
  const secrets = Object.entries(config).flatMap(([key, value]) =>
    SECRETS.has(key) ? [[key, value === null ? null : "***"] as const] : [],
  );
  return { ...Object.fromEntries(shown), ...Object.fromEntries(secrets) };
}

function fromVariables(variables: Readonly<Record<string, string | undefined>>): Record<string, unknown> {
  const found: Record<string, unknown> = {};
  for (const key of Object.keys(serverConfig.shape)) {
    const value = variables[variableOf(key)] || fromValueFile(variables, key);
    if (value === undefined || value === "") continue;
    found[key] = LISTS.has(key) ? value.split(",") : value;
  }
  return found;
}

/** Reads a value from a file, for secrets: other processes of the user can read environment variables. */
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
      return `'${issue.keys.join("', '")}' is not a setting; the settings are ${Object.keys(serverConfig.shape).join(", ")}`;
    const key = String(issue.path[0] ?? "");
    return SECRETS.has(key) ? `${key} ${issue.message}` : `${key} is ${JSON.stringify(given[key])}; ${issue.message}`;
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
