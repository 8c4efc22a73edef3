import { type Limit, PlatformError, type Resources } from "@aenv/contract";

export type Runtime = "runc" | "runsc";

/** Limits as records have them: null or absent if there is none, or none is known. */
export type KnownLimits = { readonly [L in Limit]?: number | null };

/** Limits of a control group, in the units of the kernel. */
export interface GroupLimits {
  readonly memoryBytes?: number;
  /** Microseconds of CPU time in each period of CPU_PERIOD_US. */
  readonly cpuQuotaUs?: number;
  readonly pids?: number;
}

/** Enough for a build with many compilers, and far below the limit of the machine. */
export const DEFAULT_PROCESSES = 1_024;

/** Below the limit of most services: a runtime without CAP_SYS_RESOURCE cannot raise its own. */
export const DEFAULT_OPEN_FILES = 16_384;

export const CPU_PERIOD_US = 100_000;

/** The kernel refuses a smaller quota. */
const MIN_QUOTA_US = 1_000;

/** The kernel of gVisor runs in the sandbox's control group: its memory and its threads count there. */
const RUNSC_MEMORY_MB = 64;
const RUNSC_PIDS = 512;

/** The limits of the sandbox's control group: those that were asked for, and what the runtime itself needs. */
export function groupLimits(resources: Resources, runtime: Runtime): GroupLimits {
  for (const name of ["memoryMb", "cpus", "processes", "cpuSeconds"] as const) check(name, resources[name]);
  const { memoryMb, cpus, processes } = resources;
  const isRunsc = runtime === "runsc";
  return {
    ...(memoryMb !== undefined && { memoryBytes: (memoryMb + (isRunsc ? RUNSC_MEMORY_MB : 0)) * 2 ** 20 }),
    ...(cpus !== undefined && { cpuQuotaUs: Math.max(MIN_QUOTA_US, Math.round(cpus * CPU_PERIOD_US)) }),
    ...(processes !== undefined && { pids: processes + (isRunsc ? RUNSC_PIDS : 0) }),
  };
}

function check(name: Limit, value: number | undefined): void {
  if (value === undefined) return;
  if (value > 0 && Number.isFinite(value) && (name === "cpus" || Number.isSafeInteger(value))) return;
  const expected = name === "cpus" ? "a positive number" : "a positive integer";
  throw new PlatformError("request.invalid", `the limit ${name} is ${value}; it must be ${expected}`);
}
