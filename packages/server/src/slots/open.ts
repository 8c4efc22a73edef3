import { availableParallelism, freemem } from "node:os";
import { parseDuration } from "@aenv/contract";
import { resourcesOf, type ServerConfig, variableOf } from "../config/config.ts";
import { MemoryGate } from "./memory-gate.ts";
import { Pool, type PoolOptions } from "./pool.ts";
import { RuntimePolicy } from "./runtimes.ts";
import { Scheduler } from "./scheduler.ts";
import { Verifier } from "./verifier.ts";
import { workLimits } from "./work-limits.ts";

export interface OpenPoolOptions
  extends Pick<PoolOptions, "engine" | "space" | "clients" | "runner" | "serverId" | "versionStatus" | "onFillFailure"> {
  readonly config: ServerConfig;
}

/** Longer than from a creation to the first result of a tool. */
const REFILL_AFTER_MS = 100;
const MEMORY_POLL_MS = 250;

/** Puts together what starts processes: ready ones for instances, and those that verify bundles. */
export function openPool({ config, ...rest }: OpenPoolOptions): {
  scheduler: Scheduler;
  memoryGate: MemoryGate;
  pool: Pool;
  runtimes: RuntimePolicy;
  verifier: Verifier;
} {
  const startTimeoutMs = parseDuration(config.startTimeout);
  const scheduler = new Scheduler(workLimits(config, rest.engine.can, availableParallelism()));
  const runtimes = new RuntimePolicy({ engine: rest.engine, runtime: config.runtime, runcOwners: config.runcOwners });
  const pool = new Pool({
    ...rest,
    variables: {
      [variableOf("dataDir")]: config.dataDir,
      ...(config.otlpUrl !== null && { OTEL_EXPORTER_OTLP_ENDPOINT: config.otlpUrl }),
    },
    hasSecrets: config.otlpUrl !== null && mayHaveSecret(new URL(config.otlpUrl)),
    min: config.poolMin,
    limits: { each: config.poolMax, perOwner: config.poolPerOwner, total: config.poolTotal },
    scheduler,
    refillAfterMs: REFILL_AFTER_MS,
    startTimeoutMs,
    resources: resourcesOf(config, rest.engine.can),
    now: () => performance.now(),
  });
  const verifier = new Verifier({ ...rest, pool, runtimes, startTimeoutMs, waitTimeoutMs: startTimeoutMs, scheduler });
  const memoryGate = new MemoryGate({ minBytes: config.minAvailableMemoryMb * 1024 ** 2, availableBytes: freemem, pollMs: MEMORY_POLL_MS });
  return { scheduler, memoryGate, pool, runtimes, verifier };
}

function mayHaveSecret({ username, password, search }: URL): boolean {
  return `${username}${password}${search}` !== "";
}
