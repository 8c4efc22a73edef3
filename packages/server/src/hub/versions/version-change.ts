import { type EnvironmentStatus, PlatformError, type Visibility } from "@aenv/contract";
import { happened, type VersionEvent, type VersionRow } from "./environment-version.ts";

/** What may change after publishing. Null is what stays. */
export interface Alteration {
  readonly status: EnvironmentStatus | null;
  readonly visibility: Visibility | null;
  readonly sharedWith: readonly string[] | null;
}

/** The row as someone wants it, with what happened in its story; the same row if nothing did. */
export function altered(row: VersionRow, wish: Alteration, by: string, now: Date): VersionRow {
  const event = (what: VersionEvent["what"], detail: string) => ({ at: now.toISOString(), by, what, detail });
  let next = row;
  if (wish.status !== null && wish.status !== row.status) {
    if (row.status === "Released") {
      throw new PlatformError("environment.released", `Cannot update released environment ${row.name}@${row.version}`);
    }
    next = happened(next, event(wish.status === "Released" ? "released" : "status", wish.status), { status: wish.status });
  }
  const visibility = wish.visibility ?? row.visibility;
  const sharedWith = wish.sharedWith ?? row.sharedWith;
  if (visibility !== row.visibility || sharedWith.join("\n") !== row.sharedWith.join("\n")) {
    next = happened(next, event("visibility", visibility), { visibility, sharedWith });
  }
  return next;
}
