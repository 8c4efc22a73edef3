import { isTable } from "../fields/containers.ts";
import { InvalidValue } from "../fields/field.ts";
import { environmentOf, listOf } from "./compose.ts";
import { type ComposeHost, HOST_NAME, parseHosts } from "./hosts.ts";
import { type ComposeLimits, parseLimits } from "./limits.ts";
import { type ComposeTmpfs, parseTmpfs, parseTmpfsVolume } from "./tmpfs.ts";
import { durationOf, wordsOf } from "./values.ts";
import { type ComposeVolume, parseVolume } from "./volume.ts";

type Table = Readonly<Record<string, unknown>>;

/** A service of a compose file whose variables are replaced. */
export interface ComposeService extends ComposeLimits {
  readonly name: string;
  readonly image: string | null;
  readonly build: ComposeBuild | null;
  /** Null for that of the image. */
  readonly entrypoint: readonly string[] | null;
  readonly command: readonly string[] | null;
  readonly environment: Readonly<Record<string, string>>;
  readonly cwd: string | null;
  readonly user: string | null;
  readonly healthcheck: ComposeHealthcheck | null;
  /** What it waits for before it starts. */
  readonly dependsOn: ReadonlyMap<string, "started" | "healthy">;
  /** Names by which other services reach it. */
  readonly aliases: readonly string[];
  /** The networks it is in, with the names by which others in it reach it. */
  readonly networks: readonly ComposeNetwork[];
  readonly volumes: readonly ComposeVolume[];
  readonly tmpfs: readonly ComposeTmpfs[];
  /** Further lines of its `/etc/hosts`. */
  readonly hosts: readonly ComposeHost[];
}

export interface ComposeNetwork {
  readonly name: string;
  readonly aliases: readonly string[];
}

export interface ComposeBuild {
  /** Relative to the folder of the compose file, or absolute. */
  readonly context: string;
  /** Relative to the context. */
  readonly dockerfile: string;
  readonly args: Readonly<Record<string, string>>;
}

export interface ComposeHealthcheck {
  readonly test: readonly string[];
  readonly intervalSec: number;
  readonly timeoutSec: number;
  readonly startPeriodSec: number;
  readonly startIntervalSec: number;
  readonly retries: number;
}

const USED = [
  ...["image", "build", "command", "entrypoint", "environment", "working_dir", "user", "healthcheck", "depends_on", "hostname"],
  ...["container_name", "networks", "deploy", "mem_limit", "cpus", "pids_limit", "volumes", "tmpfs", "extra_hosts"],
];
/**
 * Without effect here: ports are not published, sandboxes are not restarted, their own init reaps processes, and the platform resolves
 * names, of which a sandbox without a network has none.
 */
const IGNORED = [
  ...["expose", "ports", "labels", "restart", "init", "logging", "pull_policy", "platform", "stop_signal", "stop_grace_period"],
  "dns",
];
/** Only for the agent's container, whose commands have terminals of their own. */
const IGNORED_OF_MAIN = ["tty", "stdin_open"];

/** The keys of a service that have an effect in Docker and none here. */
export function unknownKeys(name: string, service: Table, isMain: boolean): string[] {
  const known = [...USED, ...IGNORED, ...(isMain ? IGNORED_OF_MAIN : [])];
  const unknown = Object.keys(service).filter((key) => !known.includes(key) && !key.startsWith("x-") && service[key] !== null);
  // The user of the agent is that of the task.
  if (isMain && service.user != null) unknown.push("user");
  return unknown.map((key) => `services.${name}.${key} is not supported`);
}

/** Throws `InvalidValue` for a value that cannot be used. */
export function parseService(name: string, service: Table): ComposeService {
  const at = `services.${name}`;
  const volumes = listOf(service.volumes);
  const isTmpfs = (volume: unknown): volume is Table => isTable(volume) && volume.type === "tmpfs";
  const aliases = hostNames([name, service.container_name, service.hostname]);
  return {
    name,
    image: textOrNull(service.image),
    build: parseBuild(service.build, `${at}.build`),
    entrypoint: parseCommand(service.entrypoint),
    command: parseCommand(service.command),
    environment: environmentOf(service),
    cwd: textOrNull(service.working_dir),
    user: textOrNull(service.user),
    healthcheck: parseHealthcheck(service.healthcheck, `${at}.healthcheck`),
    dependsOn: parseDependencies(service.depends_on, `${at}.depends_on`),
    aliases,
    networks: parseNetworks(service.networks, aliases, `${at}.networks`),
    volumes: volumes.filter((volume) => !isTmpfs(volume)).map((volume) => parseVolume(volume, `${at}.volumes`)),
    tmpfs: [
      ...(typeof service.tmpfs === "string" ? [service.tmpfs] : listOf(service.tmpfs)).map((one) => parseTmpfs(one, `${at}.tmpfs`)),
      ...volumes.filter(isTmpfs).map((volume) => parseTmpfsVolume(volume, `${at}.volumes`)),
    ],
    hosts: parseHosts(service.extra_hosts, `${at}.extra_hosts`),
    ...parseLimits(service, at),
  };
}

function textOrNull(value: unknown): string | null {
  return value === undefined || value === null || value === "" ? null : String(value);
}

function parseCommand(value: unknown): readonly string[] | null {
  if (value === undefined || value === null) return null;
  return Array.isArray(value) ? value.map(String) : wordsOf(String(value));
}

function parseBuild(value: unknown, at: string): ComposeBuild | null {
  if (value === undefined || value === null) return null;
  const table = isTable(value) ? value : { context: value };
  const known = ["context", "dockerfile", "args", "tags", "platforms"];
  const unknown = Object.keys(table).filter((key) => !known.includes(key));
  if (unknown.length > 0) throw new InvalidValue(`${at}.${unknown[0]}`, "it is not supported");
  return {
    context: textOrNull(table.context) ?? ".",
    dockerfile: textOrNull(table.dockerfile) ?? "Dockerfile",
    args: environmentOf({ environment: table.args }),
  };
}

function parseHealthcheck(value: unknown, at: string): ComposeHealthcheck | null {
  if (!isTable(value) || value.disable === true) return null;
  const test = Array.isArray(value.test) ? value.test.map(String) : ["CMD-SHELL", String(value.test ?? "")];
  const [kind = "", ...words] = test;
  if (kind === "NONE") return null;
  if ((kind !== "CMD" && kind !== "CMD-SHELL") || words.join("") === "")
    throw new InvalidValue(`${at}.test`, "it must be a text, or a list that begins with CMD, CMD-SHELL or NONE");
  const seconds = (key: string, fallback: number) => (value[key] == null ? fallback : durationOf(value[key], `${at}.${key}`));
  return {
    test: kind === "CMD" ? words : ["/bin/sh", "-c", words.join(" ")],
    intervalSec: seconds("interval", 30),
    timeoutSec: seconds("timeout", 30),
    startPeriodSec: seconds("start_period", 0),
    startIntervalSec: seconds("start_interval", 5),
    retries: value.retries == null ? 3 : Number(value.retries),
  };
}

function parseDependencies(value: unknown, at: string): ReadonlyMap<string, "started" | "healthy"> {
  if (!isTable(value)) return new Map(listOf(value).map((name) => [String(name), "started"]));
  return new Map(
    Object.entries(value).map(([name, how]) => {
      const condition = isTable(how) ? (how.condition ?? "service_started") : "service_started";
      if (condition !== "service_started" && condition !== "service_healthy")
        throw new InvalidValue(`${at}.${name}.condition`, `'${condition}' is not supported`);
      return [name, condition === "service_healthy" ? "healthy" : "started"];
    }),
  );
}

function hostNames(values: readonly unknown[]): readonly string[] {
  return [...new Set(values.map((one) => String(one ?? "")).filter((one) => HOST_NAME.test(one)))];
}

function parseNetworks(value: unknown, aliases: readonly string[], at: string): readonly ComposeNetwork[] {
  if (!isTable(value)) return (value == null ? ["default"] : listOf(value).map(String)).map((name) => ({ name, aliases }));
  return Object.entries(value).map(([name, table]) => {
    const unknown = isTable(table) ? Object.keys(table).find((key) => key !== "aliases" && key !== "priority") : undefined;
    if (unknown !== undefined) throw new InvalidValue(`${at}.${name}.${unknown}`, "it is not supported");
    return { name, aliases: hostNames([...aliases, ...(isTable(table) ? listOf(table.aliases) : [])]) };
  });
}
