import { type CreateInstanceRequest, messageOf, parseDuration, splitRef } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { ValidationError } from "../errors/errors.ts";
import type { Transport } from "../http/http.ts";
import type { AddressOptions } from "../platform/addresses.ts";
import type { Fetch } from "../transport/fetch.ts";
import type { Logger } from "./logger.ts";

/** What one instance is asked for with. */
export interface InstanceOptions {
  /** What the instance works on, for environments that take one. */
  readonly datasource?: string;
  /** How long the instance may live, such as `30m`, `1h30m` or `1d`; `30m` if absent, no limit if empty. */
  readonly ttl?: string;
  readonly environmentVariables?: Readonly<Record<string, string>>;
  /** The same in a word; where both name one, this one counts. */
  readonly variables?: Readonly<Record<string, string>>;
  readonly arguments?: readonly string[];
  readonly owner?: string;
  readonly labels?: Readonly<Record<string, string>>;
  /** The task that the first episode plays, and its seed; without them the environment and the platform choose. */
  readonly task?: string;
  readonly seed?: number;
  /** Storages to mount into the sandbox, in the words of the server's engine; one that cannot answers with a warning. */
  readonly mountPoints?: readonly MountPoint[];
  /** A command that the sandbox runs instead of its image's own; an engine that cannot answers with a warning. */
  readonly initCommand?: string;
}

/** A directory of a storage that the server's operator has set up, and where it appears in the sandbox. */
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
  /** Told what the server could not do as it was asked to, when the instance is ready. */
  readonly onWarning?: (warning: string) => void;
  /**
   * A bearer token for the platform; `AENV_API_KEY` if absent. It is sent to the data port only if that requires a token and is
   * on the host of the control API or named by `dataUrl`. With an `instanceUrl` of one instance or service of a platform, this
   * option (not the variable) is sent to that URL. An environment never receives it.
   */
  readonly apiKey?: string;
  /** How long a call may take, and each attempt at the control API; 60 s if absent. */
  readonly timeoutMs?: number;
  /** How long the instance may take until it runs; 500 s if absent. */
  readonly startupTimeoutMs?: number;
  /** How long a running instance may take until it is healthy; 300 s if absent, 30 s in local mode. */
  readonly healthTimeoutMs?: number;
  /** Use the instance as soon as it runs. */
  readonly skipHealthCheck?: boolean;
  /** How often a request that may be repeated is repeated; 10 if absent. */
  readonly maxRetries?: number;
  /** How long to wait between two looks at a starting instance; from 50 ms growing to 1 s if absent. */
  readonly pollIntervalMs?: number | { readonly min: number; readonly max: number };
  /** A larger MCP request is refused before it is sent; 1 MiB behind the original's gateway, which cuts off what is longer, else no limit. */
  readonly maxRequestBytes?: number;
  /** False for control planes that ignore idempotency keys, such as the original's: a create whose answer was lost is not sent again. */
  readonly dedupesCreate?: boolean;
  /** Ends everything that this environment does. */
  readonly signal?: AbortSignal;
  readonly logger?: Logger;
  /** Carries the requests instead of the built-in connection pool. */
  readonly fetch?: Fetch;
  readonly transport?: Transport;
  readonly clock?: Clock;
}

const MEBIBYTE = 1024 * 1024;

/** What to ask the control API for. */
export function toCreateRequest(ref: string, options: EnvironmentOptions): CreateInstanceRequest {
  const { name, version } = splitRef(ref);
  const hasVariables = options.environmentVariables !== undefined || options.variables !== undefined;
  return {
    envName: ref,
    datasource: options.datasource ?? "",
    // The original takes none for endless, so one is always sent; ours lets the environment's config go before it.
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
    ...(options.mountPoints !== undefined && { mount_points: options.mountPoints.map((one) => ({ ...one })) }),
    ...(options.initCommand !== undefined && { init_command: options.initCommand }),
  };
}

/** The original knows no days, and takes what it does not know for "forever". */
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

/** Only behind the original's gateway there is a limit to be heeded. */
export function requestLimit(options: EnvironmentOptions, isBehindOriginal: boolean): number {
  return options.maxRequestBytes ?? (isBehindOriginal ? MEBIBYTE : Number.POSITIVE_INFINITY);
}
