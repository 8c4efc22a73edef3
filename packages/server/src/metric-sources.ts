import { KubernetesEngine, type SandboxEngine } from "@aenv/sandbox";
import type { Instances } from "./instances/instances.ts";
import type { InstanceRow } from "./instances/row.ts";
import type { MetricSources } from "./operations/metrics.ts";
import type { MemoryGate } from "./slots/memory-gate.ts";
import type { Pool } from "./slots/pool.ts";
import type { Scheduler } from "./slots/scheduler.ts";
import type { Slots } from "./slots/slots.ts";
import type { Verifier } from "./slots/verifier.ts";
import type { Collection } from "./stores/collection.ts";
import type { TrainerServices } from "./trainer-services.ts";
import type { Workers } from "./workers/workers.ts";

export interface MeasuredComponents {
  readonly rows: Collection<InstanceRow>;
  readonly instances: Instances;
  readonly slots: Slots;
  readonly pool: Pool;
  readonly scheduler: Scheduler;
  readonly memoryGate: MemoryGate;
  readonly verifier: Verifier;
  readonly engine: SandboxEngine;
  readonly trainer: Pick<TrainerServices, "running">;
  /** Null if this process serves the data port itself. */
  readonly workers: () => Workers | null;
}

/** Where the server's metrics come from. */
export function metricSources(components: MeasuredComponents): MetricSources {
  const { rows, instances, slots, pool, scheduler, memoryGate, verifier, engine, trainer, workers } = components;
  return {
    liveInstances: () => rows.count("live", "yes"),
    pool: () => pool.sizes(),
    poolCopies: () => pool.copies,
    hosts: () => slots.hostCount,
    waiting: () => scheduler.depth("creations"),
    waitingForMemory: () => memoryGate.waiting,
    frozen: () => rows.count("frozen", "yes"),
    frozenTotals: () => instances.frozenTotals,
    poolTroubled: () => pool.failingSets,
    rollouts: () => ({ running: trainer.running(), waiting: scheduler.depth("rollouts") }),
    verifications: () => ({ running: verifier.running, waiting: verifier.waiting }),
    workers: () => workers()?.metrics() ?? null,
    cluster: engine instanceof KubernetesEngine ? engine : null,
    workerProcesses: () => ({ running: workers()?.pids.length ?? 1, replaced: workers()?.replaced ?? 0 }),
  };
}
