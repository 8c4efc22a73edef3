import { CPU_PERIOD_US, type GroupLimits } from "../../spec/limits.ts";

/** A file of a control group and what to write to it. */
export interface Setting {
  readonly controller: "memory" | "cpu" | "pids";
  readonly file: string;
  readonly value: string;
  /** Missing on machines without accounting of swap; without swap it is not needed. */
  readonly isForSwap?: boolean;
}

/** What to write, in this order: version 1 refuses a limit of memory and swap below that of memory. */
export function settingsOf({ memoryBytes, cpuQuotaUs, pids }: GroupLimits, version: 1 | 2): readonly Setting[] {
  const settings: Setting[] = [];
  if (memoryBytes !== undefined) {
    const value = String(memoryBytes);
    settings.push({ controller: "memory", file: version === 1 ? "memory.limit_in_bytes" : "memory.max", value });
    // Version 1 counts memory and swap together, version 2 swap alone.
    if (version === 1) settings.push({ controller: "memory", file: "memory.memsw.limit_in_bytes", value, isForSwap: true });
    else settings.push({ controller: "memory", file: "memory.swap.max", value: "0", isForSwap: true });
  }
  if (cpuQuotaUs !== undefined) {
    if (version === 2) settings.push({ controller: "cpu", file: "cpu.max", value: `${cpuQuotaUs} ${CPU_PERIOD_US}` });
    else
      settings.push(
        { controller: "cpu", file: "cpu.cfs_period_us", value: String(CPU_PERIOD_US) },
        { controller: "cpu", file: "cpu.cfs_quota_us", value: String(cpuQuotaUs) },
      );
  }
  if (pids !== undefined) settings.push({ controller: "pids", file: "pids.max", value: String(pids) });
  return settings;
}
