import { expect } from "vitest";
import type { Platform } from "../platform.ts";

/** Waits until an instance is frozen. */
export async function untilFrozen(platform: Platform, id: string): Promise<void> {
  const isFrozen = async () => ((await platform.demand("GET", `/env-instance/${id}`)) as { frozen?: boolean }).frozen;
  await expect.poll(isFrozen, { timeout: 30_000 }).toBe(true);
}

/** What the metrics say about frozen sandboxes. */
export async function frozenMetrics({ controlUrl }: Platform) {
  const text = await (await fetch(`${controlUrl}/metrics`)).text();
  const read = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1] ?? Number.NaN);
  return {
    instances: read("aenv_instances_frozen"),
    seconds: read("aenv_frozen_seconds_total"),
    savedCpuSeconds: read("aenv_frozen_cpu_seconds_saved_total"),
  };
}
