import type { InstanceRecord, InstanceStatus } from "@aenv/contract";
import type { Clock } from "../async/clock.ts";
import { poll } from "../async/polling.ts";
import { EnvironmentError } from "../errors/errors.ts";
import type { LookOptions, WaitOptions } from "./scheduler-options.ts";

const POLL_INTERVAL = { minMs: 50, maxMs: 1_000 };

/** Longer than a typical start, shorter than the usual timeout of proxies. */
const LONGEST_STATUS_WAIT_MS = 20_000;

/** Final statuses. */
const FINAL: readonly string[] = ["Failed", "Terminated", "Succeeded"];

/** Polls until the instance has the status. Throws at once if it can no longer reach it, with the reason if the server gives one. */
export async function waitForStatus(
  id: string,
  status: InstanceStatus,
  look: (options: LookOptions) => Promise<InstanceRecord>,
  options: WaitOptions & { readonly clock: Clock; readonly longestLookMs: number },
): Promise<InstanceRecord> {
  const { timeoutMs = 300_000, interval = POLL_INTERVAL, signal, needsAddress = true, clock, longestLookMs } = options;
  let last = "unknown";
  const query = async (leftMs: number) => {
    // An AEnv platform holds its response until the instance runs or failed; others ignore the parameter.
    const waitMs = status === "Running" ? Math.floor(Math.min(leftMs, LONGEST_STATUS_WAIT_MS, longestLookMs)) : 0;
    const record = await look({ signal, deadlineAt: clock.now() + leftMs, waitMs });
    last = record.status;
    // Without an address its tools cannot be used, even if it is Running.
    if (record.status === status) return needsAddress && status === "Running" && !record.ip ? null : record;
    if (FINAL.includes(record.status)) throw ended(record, status);
    return null;
  };
  const found = await poll(query, { clock, timeoutMs, interval, signal });
  if (found !== null) return found;
  const message = `instance '${id}' did not become ${status} within ${timeoutMs} ms; its last status was ${last}`;
  throw new EnvironmentError(last === status ? `${message}, without an address` : message, { code: "instance.start_timeout" });
}

function ended(record: InstanceRecord, wanted: string): EnvironmentError {
  const reason = [record.reason, record.message].find((one) => typeof one === "string" && one !== "");
  const because = reason === undefined ? "the server gave no reason" : String(reason);
  return new EnvironmentError(`instance '${record.id}' is ${record.status} and will not become ${wanted}: ${because}`, {
    code: "instance.start_failed",
    details: { status: record.status },
  });
}
