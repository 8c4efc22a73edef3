import type { InstanceRow } from "./row.ts";

/** Ended instances stay visible this long, so that their owner can read the reason. */
export const KEEP_ENDED_MS = 10 * 60_000;

/** What is due for a row, and when: the end of a live instance, or the removal of the row. */
export interface Due {
  readonly at: number;
  readonly what: "expire" | "idle" | "forget";
}

export function dueOf(row: InstanceRow): Due {
  if (row.status === "Failed" || row.status === "Terminated") return { at: Date.parse(row.updatedAt) + KEEP_ENDED_MS, what: "forget" };
  const expires = Date.parse(row.expiresAt);
  // An instance that does not run yet cannot be idle.
  if (row.idleSeconds === null || row.status !== "Running") return { at: expires, what: "expire" };
  const idle = Date.parse(row.lastUsedAt) + row.idleSeconds * 1_000;
  return idle < expires ? { at: idle, what: "idle" } : { at: expires, what: "expire" };
}

/** What is due now, or null. */
export function dueNow(row: InstanceRow, now: Date): Due["what"] | null {
  const due = dueOf(row);
  return now.getTime() >= due.at ? due.what : null;
}
