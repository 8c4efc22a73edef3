import { type EnvironmentStatus, PlatformError, type Visibility } from "@aenv/contract";
import { type VersionEvent, type VersionRow, withEvent } from "./environment-version.ts";

/** What may change after publishing. Null means unchanged. */
export interface VersionChange {
  readonly status: EnvironmentStatus | null;
  readonly visibility: Visibility | null;
  readonly sharedWith: readonly string[] | null;
}

/** The row with the change applied and recorded in its history; the same row if nothing changes. */
export function applyChange(row: VersionRow, change: VersionChange, by: string, now: Date): VersionRow {
  const event = (what: VersionEvent["what"], detail: string) => ({ at: now.toISOString(), by, what, detail });
  let next = row;
  if (change.status !== null && change.status !== row.status) {
    if (row.status === "Released") {
      throw new PlatformError("environment.released", `Cannot update released environment ${row.name}@${row.version}`);
    }
    next = withEvent(next, event(change.status === "Released" ? "released" : "status", change.status), { status: change.status });
  }
  const visibility = change.visibility ?? row.visibility;
  const sharedWith = change.sharedWith ?? row.sharedWith;
  if (visibility !== row.visibility || sharedWith.join("\n") !== row.sharedWith.join("\n")) {
    next = withEvent(next, event("visibility", visibility), { visibility, sharedWith });
  }
  return next;
}
