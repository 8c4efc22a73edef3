import { isObject, messageOf, PlatformError, parseBoundedJson, ReadLimitExceeded, readBoundedText, sandboxFailure } from "@aenv/contract";
import { isReadyStatus } from "@aenv/sandbox";
import type { Pool } from "undici";

/** What is known about a program; see `Slot.program`. */
export interface ServedProgram {
  readonly hasServer: boolean;
  readonly healthPath: string | null;
}

export interface HealthAnswer {
  readonly status: number;
  readonly body: unknown;
}

const TIMEOUT_MS = 60_000;
const MAX_BYTES = 64 * 1024;

/**
 * The health of an instance whose program is not an environment of the kit, as clients expect it. A program that reports its health in
 * the same form, as the original's servers do, speaks for itself.
 */
export async function readProgramHealth(pool: Pool, { healthPath, hasServer }: ServedProgram, instanceId: string): Promise<HealthAnswer> {
  if (!hasServer) return healthy("a sandbox for commands, files and ports");
  const path = healthPath ?? "/health";
  try {
    const { statusCode, body } = await pool.request({ method: "GET", path, signal: AbortSignal.timeout(TIMEOUT_MS) });
    const own = reportOf(await readReport(body));
    if (own !== null) return { status: statusCode, body: own };
    return isReadyStatus(healthPath, statusCode)
      ? healthy(`GET ${path} answered ${statusCode}`)
      : unhealthy(instanceId, `answered ${statusCode} to GET ${path}`);
  } catch (error) {
    return unhealthy(instanceId, `did not answer GET ${path}: ${messageOf(error)}`);
  }
}

/** The text of a response; empty if it is too large for a report. */
async function readReport(body: AsyncIterable<Uint8Array>): Promise<string> {
  try {
    return await readBoundedText(body, { maxBytes: MAX_BYTES });
  } catch (error) {
    if (error instanceof ReadLimitExceeded) return "";
    throw error;
  }
}

/** `{ success, data: { status } }`, or null for any other text. */
function reportOf(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = parseBoundedJson(text);
    const isReport = isObject(value) && typeof value.success === "boolean" && isObject(value.data) && typeof value.data.status === "string";
    return isReport ? value : null;
  } catch {
    return null;
  }
}

function healthy(message: string): HealthAnswer {
  return { status: 200, body: { success: true, data: { status: "healthy", message } } };
}

function unhealthy(instanceId: string, what: string): HealthAnswer {
  const error = new PlatformError("environment.unhealthy", `the program of instance '${instanceId}' ${what}`);
  return { status: error.status, body: sandboxFailure(error) };
}
