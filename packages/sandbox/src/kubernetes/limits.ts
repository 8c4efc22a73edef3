import type { ReachedLimit } from "../engine/engine.ts";
import { LimitWatch } from "../lifecycle/limit-watch.ts";
import type { KubernetesSandbox } from "./sandbox.ts";

const EVERY_MS = 10_000;
const STATS_TIMEOUT_MS = 4_000;

/** Reports the limits that sandboxes reach while they go on. */
export function watchLimits(report: (reached: ReachedLimit) => void): LimitWatch<KubernetesSandbox> {
  return new LimitWatch({
    periodMs: EVERY_MS,
    measure,
    limitsOf: ({ state: { memoryMb } }) => ({ memoryMb }),
    report,
  });
}

async function measure(sandbox: KubernetesSandbox) {
  if (sandbox.hasExited) return null;
  const stats = await (await sandbox.init()).stats(AbortSignal.timeout(STATS_TIMEOUT_MS));
  const { oomKills: outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit } = stats;
  return { outOfMemoryKills, processLimitHits, diskFreeKb, openFiles, openFilesLimit };
}
