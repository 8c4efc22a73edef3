import { messageOf, PlatformError } from "@aenv/contract";
import type { HealthReport } from "../definition/definition.ts";
import { jsonOrThrow } from "../json/to-json.ts";

/** Runs the environment's own health check. Errors of its code are passed to `onFailure` and become platform errors. */
export async function runHealthCheck(check: () => unknown, onFailure: (error: unknown) => void): Promise<HealthReport> {
  try {
    return jsonOrThrow("health.failed", await check(), "the result of the health check") as HealthReport;
  } catch (error) {
    if (error instanceof PlatformError) throw new PlatformError("health.failed", error.message, { cause: error });
    onFailure(error);
    throw new PlatformError("health.failed", messageOf(error), { cause: error });
  }
}

/** The report of an environment without a health check. */
export function defaultHealth(toolCount: number, lastActiveAt: number): HealthReport {
  return {
    status: "success",
    message: "MCP server is healthy",
    details: { tool_count: toolCount, event_loop_utilization: loopUtilization() },
    last_active: lastActiveAt / 1_000,
  };
}

// Bun has no such measurement.
const measure = performance.eventLoopUtilization as typeof performance.eventLoopUtilization | undefined;
let lastUtilization = measure?.();

/** The share of time since the last call in which the event loop was busy; near 1, answers are delayed. Null where it is not measured. */
function loopUtilization(): number | null {
  if (measure === undefined) return null;
  const now = measure();
  const { utilization } = measure(now, lastUtilization);
  lastUtilization = now;
  return Math.round(utilization * 1_000) / 1_000;
}
