import { Pattern } from "../python/pattern.ts";

/** `environment`: the machine is the likely cause. `ambiguous`: the machine or the patch. */
export type Tier = "environment" | "ambiguous";

export interface InfrastructureFailure {
  readonly reason: string;
  readonly tier: Tier;
}

/** The first match decides. */
const CLASSES: readonly (InfrastructureFailure & { readonly pattern: Pattern })[] = [
  environment("browser_launch_failed", "Failed to launch|Failed to connect to the bus"),
  environment("display_unavailable", "cannot open display|Missing X server|unable to open X display"),
  environment("out_of_memory", "Cannot allocate memory|OutOfMemoryError|^Killed$"),
  environment("container_unavailable", "Error response from daemon|Cannot connect to the Docker daemon"),
  environment("network_unreachable", "Could not resolve host|Temporary failure in name resolution"),
  ambiguous("missing_module", "Cannot find module|MODULE_NOT_FOUND|ModuleNotFoundError"),
  ambiguous("no_tests_collected", "no tests ran|collected 0 items"),
  ambiguous("tests_timed_out", "Timeout error: \\d+ seconds exceeded"),
];

/**
 * The likely cause, outside of the patch, of a run without results; null if none is recognized. This is advice for the reader of a
 * report and never changes a result.
 */
export function classifyFailure(log: string): InfrastructureFailure | null {
  const found = CLASSES.find(({ pattern }) => pattern.search(log) !== null);
  return found === undefined ? null : { reason: found.reason, tier: found.tier };
}

function environment(reason: string, pattern: string) {
  return { reason, tier: "environment", pattern: new Pattern(pattern, "M") } as const;
}

function ambiguous(reason: string, pattern: string) {
  return { reason, tier: "ambiguous", pattern: new Pattern(pattern, "M") } as const;
}
