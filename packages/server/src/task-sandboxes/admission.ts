import { PlatformError } from "@aenv/contract";
import type { InstanceSandboxes } from "./instance-sandboxes.ts";
import type { TaskSandboxLimits, TaskSandboxPolicy, TaskSandboxSpec } from "./policy.ts";

/** The sandboxes of all instances. */
type All = Iterable<InstanceSandboxes>;

/** Refuses a sandbox more than an instance, or all of its owner, may have. */
export function admit(
  instanceId: string,
  mine: InstanceSandboxes,
  episode: string,
  {
    atOnce,
    perInstance,
    perOwner,
    all,
  }: Pick<TaskSandboxPolicy, "atOnce"> & Pick<TaskSandboxLimits, "perInstance" | "perOwner"> & { readonly all: All },
): void {
  // While an episode is reset, those of two are open. The code names its episodes, so the server's own limit counts all of them.
  if (mine.countOf(episode) >= atOnce || mine.count >= 2 * atOnce)
    throw new PlatformError(
      "environment.invalid",
      `instance '${instanceId}' has ${mine.count} open sandboxes, as many as it may have: the smaller of deployConfig.taskSandboxes.atOnce and the server's taskSandboxesPerInstance; close one first`,
    );
  if (mine.count >= perInstance)
    throw new PlatformError(
      "environment.invalid",
      `instance '${instanceId}' has ${mine.count} open sandboxes in all its episodes, the server's limit (taskSandboxesPerInstance); close one first, or ask the operator to raise it: while an episode is reset, it counts the sandboxes of both`,
    );
  let count = 0;
  for (const other of all) if (other.owner === mine.owner) count += other.count;
  if (count >= perOwner)
    throw new PlatformError("quota.exceeded", `the owner has ${count} open sandboxes of tasks, the server's limit (maxTaskSandboxes)`, {
      details: { limit: perOwner, retryAfterSeconds: 5 },
    });
}

/**
 * Checks the memory for the first sandbox of an instance. Further ones, such as those of rewards, are always admitted: the instance holds
 * its memory until it has them, so that instances which wait for each other would never end. A sandbox larger than all memory runs alone.
 */
export function requireMemory({ memoryMb }: TaskSandboxSpec, totalMemoryMb: number | null, hasMemory: () => boolean, all: All): void {
  const used = memoryOf(all);
  if (totalMemoryMb !== null && used > 0 && used + memoryMb > totalMemoryMb)
    throw noCapacity(`it may use ${memoryMb} MiB, and ${used} of ${totalMemoryMb} MiB are taken (taskMemoryTotalMb)`);
  if (used > 0 && !hasMemory()) throw noCapacity("the machine is short of memory (minAvailableMemoryMb)");
}

/** What all sandboxes may use together. */
export function memoryOf(all: All): number {
  let used = 0;
  for (const { memoryMb } of all) used += memoryMb;
  return used;
}

function noCapacity(why: string): PlatformError {
  return new PlatformError("sandbox.no_capacity", `the server has no capacity for another sandbox of a task now: ${why}`, {
    details: { retryAfterSeconds: 5 },
  });
}
