import type { InstanceRow } from "./row.ts";

/** Ended instances stay visible this long, so that their owner can read why. */
export const KEEP_ENDED_MS = 10 * 60_000;

/** When something is due for a row, and what: the end of a live instance, or the row's own. */
export interface Due {
  readonly at: number;
  readonly what: "expire" | "idle" | "forget";
}

export function dueOf(row: InstanceRow): Due {
  if (row.status === "Failed" || row.status === "Terminated") return { at: Date.parse(row.updatedAt) + KEEP_ENDED_MS, what: "forget" };
  const expires = Date.parse(row.expiresAt);
  // Who has not come up yet cannot have been used.
  if (row.idleSeconds === null || row.status !== "Running") return { at: expires, what: "expire" };
  const idle = Date.parse(row.lastUsedAt) + row.idleSeconds * 1_000;
  return idle < expires ? { at: idle, what: "idle" } : { at: expires, what: "expire" };
}

/** What is due now, or null if nothing is. */
export function dueNow(row: InstanceRow, now: Date): Due["what"] | null {
  const due = dueOf(row);
  return now.getTime() >= due.at ? due.what : null;
}
