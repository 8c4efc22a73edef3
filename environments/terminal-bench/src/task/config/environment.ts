import { parseFloatText, strip } from "@aenv/benchmark";
import { isTable, list, map, object } from "../../fields/containers.ts";
import { before, type Field, InvalidValue, optional, type Parsed, refine, withDefault } from "../../fields/field.ts";
import { bool, float, int, oneOf, text } from "../../fields/scalars.ts";
import { healthcheck } from "./healthcheck.ts";
import { type McpServerConfig, mcpServerField } from "./mcp-server.ts";
import { allowedHosts, checkedHosts, type Edition, networkMode } from "./network.ts";

const UNITS: Readonly<Record<string, number>> = { G: 1024, M: 1, K: 1 / 1024 };
const TOPOLOGY = /^[1-9][0-9]*(?:x[1-9][0-9]*)+$/;

const tpu = object({
  type: refine(text, (value, at) => {
    if (value === "") throw new InvalidValue(at, "must not be empty");
    return value;
  }),
  topology: refine(text, (value, at) => {
    const topology = strip(value);
    if (!TOPOLOGY.test(topology)) throw new InvalidValue(at, `'${value}' is not a topology such as 2x4`);
    return topology;
  }),
});

/** Later editions accept parts of a processor. */
const cpus = refine(float, (value, at) => {
  if (!Number.isFinite(value)) throw new InvalidValue(at, `expected a finite number, got ${value}`);
  return value;
});

const shape = (edition: Edition) => ({
  network_mode: withDefault(networkMode, "public"),
  allowed_hosts: optional(allowedHosts(edition)),
  build_timeout_sec: withDefault(float, 600),
  docker_image: optional(text),
  os: withDefault(before(lowerCase, oneOf("linux", "windows")), "linux"),
  cpus: optional(edition === "later" ? cpus : int),
  memory_mb: optional(int),
  storage_mb: optional(int),
  gpus: optional(int),
  gpu_types: optional(list(text)),
  tpu: optional(tpu),
  mcp_servers: withDefault(list(mcpServerField(edition)), [] as readonly McpServerConfig[]),
  env: withDefault(map(text), {}),
  skills_dir: optional(text),
  healthcheck: optional(healthcheck),
  workdir: optional(text),
});

export type EnvironmentConfig = Parsed<ReturnType<typeof shape>>;

/** `[environment]`, and the environment of a separate verifier. */
export function environmentField(edition: Edition): Field<EnvironmentConfig> {
  return before(withoutLegacyKeys, checkedHosts(object(shape(edition)), edition));
}

/** Old keys in their current form: `memory = "2G"`, `allow_internet = false`. */
function withoutLegacyKeys(value: unknown, at: string): unknown {
  if (!isTable(value)) return value;
  const { memory, storage, allow_internet, ...table } = value;
  const sizes = { ...sizeOf(memory, table, "memory", at), ...sizeOf(storage, table, "storage", at) };
  if (allow_internet === undefined) return { ...table, ...sizes };
  const network_mode = bool.parse(allow_internet, `${at}.allow_internet`) ? "public" : "no-network";
  const isDecided = "network_mode" in table || "allowed_hosts" in table;
  return { ...table, ...sizes, ...(!isDecided && { network_mode }) };
}

function sizeOf(size: unknown, table: Readonly<Record<string, unknown>>, key: "memory" | "storage", at: string): Record<string, number> {
  // The reference ignores sizes that are not strings.
  if (typeof size !== "string") return {};
  const megabytes = parseSize(size, `${at}.${key}`);
  const twin = table[`${key}_mb`];
  // A number in a string is another value, although it would be accepted alone.
  if (twin !== undefined && (typeof twin === "string" || Number(twin) !== megabytes)) {
    throw new InvalidValue(`${at}.${key}`, `'${size}' is ${megabytes} MB, but ${key}_mb says ${String(twin)}; keep one of them`);
  }
  return { [`${key}_mb`]: megabytes };
}

/** `1.5G` as whole megabytes. */
export function parseSize(size: string, at = ""): number {
  const upper = strip(size).toUpperCase();
  const unit = UNITS[upper.slice(-1)];
  const number = unit === undefined ? null : parseFloatText(upper.slice(0, -1));
  if (unit === undefined || number === null || Number.isNaN(number)) {
    throw new InvalidValue(at, `'${size}' is not a size; write a number and G, M or K`);
  }
  if (!Number.isFinite(number)) throw new RangeError(`${at}: '${size}' is not a finite size`);
  return Math.trunc(number * unit) + 0;
}

function lowerCase(value: unknown): unknown {
  return typeof value === "string" ? value.toLowerCase() : value;
}
