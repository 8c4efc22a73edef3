import { PlatformError } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import { isInScope } from "../../access/scopes.ts";
import type { VersionRow } from "./environment-version.ts";

/** Owns the built-in environments. No token can have this owner. */
export const PLATFORM_OWNER = "_aenv";

export function isAdmin(caller: Caller): boolean {
  return caller.roles.has("admin");
}

/** A version that the caller may not see is reported as not found. */
export function maySee(row: Omit<VersionRow, "history">, caller: Caller): boolean {
  if (row.isRemoved || !isInScope(caller, row.name)) return false;
  if (isAdmin(caller) || row.visibility === "public") return true;
  if (row.owner === caller.owner || row.publisher === caller.owner) return true;
  return row.visibility === "shared" && row.sharedWith.includes(caller.owner);
}

export function assertPublisher(caller: Caller): void {
  if (isAdmin(caller) || caller.roles.has("publisher")) return;
  throw new PlatformError("access.denied", "publishing requires the role publisher; use a token that has it");
}

/** The first publisher of a name owns it. A token's scopes may limit it to some names. */
export function assertNameAllowed(name: string, owner: string | null, caller: Caller): void {
  if (!isInScope(caller, name)) {
    throw new PlatformError("access.denied", `this token is not valid for '${name}', only for ${caller.scopes?.join(", ")}`, {
      details: { name },
    });
  }
  if (isAdmin(caller) || owner === null || owner === caller.owner) return;
  const why =
    owner === PLATFORM_OWNER
      ? `'${name}' is the name of a built-in environment, which everybody may use as it is; publish yours under another name: aenv push --name NAME`
      : `the name '${name}' belongs to another publisher; choose another name`;
  throw new PlatformError("access.denied", why, { details: { name } });
}
