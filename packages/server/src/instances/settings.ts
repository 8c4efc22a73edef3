import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseDuration } from "@aenv/contract";
import type { EngineAbilities, SandboxEngine } from "@aenv/sandbox";
import { DEFAULT_MEMORY_MB, parseEgressLimit, type ServerConfig } from "../config/config.ts";
import type { OpenInstancesOptions } from "./open.ts";
import { Secrets } from "./secrets.ts";

type Settings = Pick<
  OpenInstancesOptions,
  | "blobs"
  | "commandTimeoutMs"
  | "commandsAtOnce"
  | "defaultFreezeSeconds"
  | "defaultIdleSeconds"
  | "defaultTtl"
  | "egressLimit"
  | "home"
  | "leaseMs"
  | "maxEmptyHosts"
  | "maxHosts"
  | "roundMs"
  | "secrets"
  | "startTimeoutMs"
  | "taskLimits"
>;

/** What the configuration of the server says about instances. */
export function instanceSettings(config: ServerConfig, { can }: SandboxEngine): Settings {
  const roundMs = parseDuration(config.round);
  return {
    home: config.home,
    blobs: join(config.home, "blobs"),
    maxHosts: config.maxHosts ?? defaultHosts(can),
    // Empty hosts are ready processes like those of the pool.
    maxEmptyHosts: config.poolTotal,
    defaultTtl: config.defaultTtl,
    defaultIdleSeconds: config.idleAfter === null ? null : parseDuration(config.idleAfter) / 1_000,
    defaultFreezeSeconds: config.freezeAfter === null ? null : parseDuration(config.freezeAfter) / 1_000,
    egressLimit: parseEgressLimit(config.egressLimit) ?? "none",
    taskLimits: {
      perInstance: config.taskSandboxesPerInstance,
      perOwner: config.maxTaskSandboxes,
      totalMemoryMb: config.taskMemoryTotalMb,
      memoryMb: config.taskMemoryMb,
      defaultMemoryMb: Math.min(config.memoryMb ?? DEFAULT_MEMORY_MB, config.taskMemoryMb),
    },
    commandTimeoutMs: parseDuration(config.commandTimeout),
    commandsAtOnce: config.commandsPerInstance,
    secrets: new Secrets(config.secretsDir),
    startTimeoutMs: parseDuration(config.startTimeout),
    roundMs,
    // With a long heartbeat interval the lease must be longer too.
    leaseMs: Math.max(parseDuration(config.silence), 3 * roundMs),
  };
}

/** More processes than cores would not run faster. Those on other machines have as many instances each as the next one is started at. */
function defaultHosts({ elsewhere }: EngineAbilities): number {
  return elsewhere ? Number.POSITIVE_INFINITY : availableParallelism();
}
