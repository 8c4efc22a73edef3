import type { InstanceRow } from "./row.ts";

/** When an instance expires that ends with another one, or with its service. */
export const NEVER = "9999-12-31T23:59:59.999Z";

/** Ended instances stay visible this long, so that their owner can read the reason. */
export const KEEP_ENDED_MS = 10 * 60_000;

/** What is due for a row, and when: the end of a live instance, or the removal of the row. */
export interface Due {
  readonly at: number;
  readonly what: "expire" | "idle" | "freeze" | "forget";
}

export function dueOf(row: InstanceRow): Due {
  if (row.status === "Failed" || row.status === "Terminated") return { at: Date.parse(row.updatedAt) + KEEP_ENDED_MS, what: "forget" };
  const expires = Date.parse(row.expiresAt);
  const due: Due = { at: expires, what: "expire" };
  // An instance that does not run yet cannot be idle.
  if (row.status !== "Running") return due;
  const after = (seconds: number | null | undefined) =>
    seconds == null ? Number.POSITIVE_INFINITY : Date.parse(row.lastUsedAt) + seconds * 1_000;
  const idle = after(row.idleSeconds);
  const freeze = row.isFrozen === true ? Number.POSITIVE_INFINITY : after(row.freezeSeconds);
  if (freeze < Math.min(idle, expires)) return { at: freeze, what: "freeze" };
  return idle < expires ? { at: idle, what: "idle" } : due;
}

/** What is due now, or null. */
export function dueNow(row: InstanceRow, now: Date): Due["what"] | null {
  const due = dueOf(row);
  return now.getTime() >= due.at ? due.what : null;
}
