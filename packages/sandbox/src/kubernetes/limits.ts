import type { ReachedLimit } from "../engine/engine.ts";
import { LimitWatch, measuredUse } from "../lifecycle/limit-watch.ts";
import type { KubernetesSandbox } from "./sandbox.ts";

const EVERY_MS = 10_000;

/** Reports the limits that sandboxes reach while they go on. */
export function watchLimits(report: (reached: ReachedLimit) => void): LimitWatch<KubernetesSandbox> {
  return new LimitWatch({
    periodMs: EVERY_MS,
    measure: async (sandbox) => (sandbox.hasExited ? null : measuredUse(await sandbox.init())),
    limitsOf: ({ state: { memoryMb } }) => ({ memoryMb }),
    report,
  });
}
