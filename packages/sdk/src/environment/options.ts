import {
  type CreateInstanceRequest,
  type EgressPolicy,
  type InstanceModels,
  type InstanceModelsInput,
  instanceModels,
  type Json,
  messageOf,
  parseDuration,
  problemsOf,
  type SnapshotRecord,
  type SnapshotRef,
  snapshotRecord,
  splitRef,
} from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { ValidationError } from "../errors/errors.ts";
import type { Transport } from "../http/http.ts";
import type { AddressOptions } from "../platform/addresses.ts";
import type { Fetch } from "../transport/fetch.ts";
import type { Logger } from "./logger.ts";

/** Options of one instance. */
export interface InstanceOptions {
  /** The data source, for environments that use one. */
  readonly datasource?: string;
  /** How long the instance may live, such as `30m`, `1h30m` or `1d`; `30m` if absent, no limit if empty. */
  readonly ttl?: string;
  readonly environmentVariables?: Readonly<Record<string, string>>;
  /** Short form of `environmentVariables`; overrides it where both set a variable. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly arguments?: readonly string[];
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** Task and seed of the first episode; the environment and the platform choose them if absent. */
  readonly task?: string;
  readonly seed?: number;
  /**
   * What it continues from: a stored snapshot, by its name or id or as `env.snapshot({ name })` returned it, or a state as `env.snapshot()`
   * returned it. Task, seed and arguments are those of the snapshot.
   */
  readonly snapshot?: string | SnapshotRef | SnapshotRecord | Json;
  /** Where its programs may connect to. It may only narrow what the environment allows. */
  readonly egress?: EgressPolicy;
  /** Variables whose values are secrets of the caller, by the secrets' names: `{ API_KEY: "my-key" }`. */
  readonly secrets?: Readonly<Record<string, string>>;
  /** The models that the environment's code calls, by name, instead of those that it declares. Keys in it are kept in the server's memory only. */
  readonly models?: InstanceModelsInput;
  /** Storages to mount into the sandbox, in the format of the server's engine. An engine without mounts answers with a warning. */
  readonly mountPoints?: readonly MountPoint[];
  /** A command that the sandbox runs instead of its image's. An engine that does not support it answers with a warning. */
  readonly initCommand?: string;
}

/** A directory of a storage that the server's operator has configured, and its mount point in the sandbox. */
export interface MountPoint {
  readonly id?: string;
  readonly remote_dir?: string;
  readonly local_dir?: string;
  readonly [field: string]: unknown;
}

export interface EnvironmentOptions extends AddressOptions, InstanceOptions {
  /**
   * False for an instance that serves no tools, such as a plain image: it is ready as soon as it runs, nothing is sent to the
   * data port, and its ports are reached by `presignUrl`.
   */
  readonly dataPlane?: boolean;
  /** Called for each option that the server could not apply, when the instance is ready. */
  readonly onWarning?: (warning: string) => void;
  /**
   * A bearer token for the platform; `AENV_API_KEY` if absent. It is sent to the data port only if that requires a token and is
   * on the host of the control API or named by `dataUrl`. With an `instanceUrl` of one instance or service of a platform, this
   * option (not the variable) is sent to that URL. An environment never receives it.
   */
  readonly apiKey?: string;
  /** Timeout of a call, and of each request to the control API; 60 s if absent. */
  readonly timeoutMs?: number;
  /** Timeout until the instance runs; 500 s if absent. */
  readonly startupTimeoutMs?: number;
  /** Timeout until a running instance is healthy; 300 s if absent, 30 s in local mode. */
  readonly healthTimeoutMs?: number;
  /** The instance is used as soon as it runs. */
  readonly skipHealthCheck?: boolean;
  /** Retries of a request that may be repeated; 10 if absent. */
  readonly maxRetries?: number;
  /** Interval between two status requests for a starting instance; growing from 50 ms to 1 s if absent. */
  readonly pollIntervalMs?: number | { readonly min: number; readonly max: number };
  /** Larger MCP requests are rejected before they are sent; 1 MiB behind the original's gateway, which truncates longer ones, else no limit. */
  readonly maxRequestBytes?: number;
  /** A larger answer of the instance or the control API is not read (`sandbox.answer_too_large`); 64 MiB if absent. */
  readonly maxAnswerBytes?: number;
  /**
   * Values in the JSON of an answer, that is members of objects and elements of arrays; two million if absent. A check of each value
   * can cost much more memory than its text.
   */
  readonly maxAnswerValues?: number;
  /** False for control planes that ignore idempotency keys, such as the original's: a create request whose response was lost is not sent again. */
  readonly dedupesCreate?: boolean;
  /** Aborts all work of this environment. */
  readonly signal?: AbortSignal;
  readonly logger?: Logger;
  /** Sends the requests instead of the built-in connection pool. */
  readonly fetch?: Fetch;
  readonly transport?: Transport;
  readonly clock?: Clock;
}

const MEBIBYTE = 1024 * 1024;

function toWireModels(models: InstanceModelsInput): InstanceModels {
  const parsed = instanceModels.safeParse(models);
  if (parsed.success) return parsed.data;
  throw new ValidationError(problemsOf(parsed.error, "models"));
}

/** The body of the control API's create request. */
export function toCreateRequest(ref: string, options: EnvironmentOptions): CreateInstanceRequest {
  const { name, version } = splitRef(ref);
  const hasVariables = options.environmentVariables !== undefined || options.variables !== undefined;
  return {
    envName: ref,
    datasource: options.datasource ?? "",
    // Always sent, because no ttl means forever to the original. On an AEnv platform the environment's config overrides the fallback.
    ttl: toWireTtl(options.ttl ?? "30m"),
    ...(options.ttl === undefined && { ttlIsFallback: true }),
    // Omitted if the caller sets none: on the original's services, even these two would replace the variables of the environment's config.
    ...(hasVariables && {
      environment_variables: { ...options.environmentVariables, ...options.variables, envNAME: name, envversion: version },
    }),
    arguments: [...(options.arguments ?? [])],
    ...(options.owner !== undefined && { owner: options.owner }),
    ...(options.labels !== undefined && { labels: { ...options.labels } }),
    ...(options.task !== undefined && { task: options.task }),
    ...(options.seed !== undefined && { seed: options.seed }),
    ...(options.snapshot !== undefined && { snapshot: toWireSnapshot(options.snapshot) }),
    ...(options.egress !== undefined && { egress: options.egress }),
    ...(options.secrets !== undefined && { secrets: { ...options.secrets } }),
    ...(options.models !== undefined && { models: toWireModels(options.models) }),
    ...(options.mountPoints !== undefined && { mount_points: options.mountPoints.map((one) => ({ ...one })) }),
    ...(options.initCommand !== undefined && { init_command: options.initCommand }),
  };
}

/** A record names a stored snapshot by its id. */
function toWireSnapshot(snapshot: InstanceOptions["snapshot"]): unknown {
  const record = snapshotRecord.safeParse(snapshot);
  return record.success ? { id: record.data.id } : snapshot;
}

/** Days are converted: the original does not support them, and treats an unknown unit as "forever". */
function toWireTtl(ttl: string): string {
  if (ttl === "") return "";
  let ms: number;
  try {
    ms = parseDuration(ttl);
  } catch (cause) {
    throw new ValidationError(`ttl: ${messageOf(cause)}`, { cause });
  }
  return ttl.includes("d") ? `${ms / 1_000}s` : ttl;
}

export function pollInterval(option: EnvironmentOptions["pollIntervalMs"]): { minMs: number; maxMs: number } {
  if (option === undefined) return { minMs: 50, maxMs: 1_000 };
  return typeof option === "number" ? { minMs: option, maxMs: option } : { minMs: option.min, maxMs: option.max };
}

/** Only the original's gateway has a limit. */
export function requestLimit(options: EnvironmentOptions, isBehindOriginal: boolean): number {
  return options.maxRequestBytes ?? (isBehindOriginal ? MEBIBYTE : Number.POSITIVE_INFINITY);
}
