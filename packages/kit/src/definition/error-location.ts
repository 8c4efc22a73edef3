import { realpathSync } from "node:fs";
import { sep } from "node:path";
import { PlatformError } from "@aenv/contract";
import { firstLocation, type SourceLocation } from "./source-location.ts";

/** The same error with the location in its details, unless it has one already or the location is null. */
export function withLocation(error: PlatformError, location: SourceLocation | null): PlatformError {
  if (location === null || error.details.place !== undefined) return error;
  const { code, message, cause, details, retryable } = error;
  return new PlatformError(code, message, { cause: cause ?? error, details: { ...details, place: location }, retryable });
}

/** The first line of the project in the stack of an error or of its cause; lines of Node and of installed packages are skipped. */
export function locationInProject(error: unknown, root: string): SourceLocation | null {
  if (!(error instanceof Error)) return null;
  // The cause was thrown first and is nearest to the mistake.
  const inCause = error.cause === undefined || error.cause === error ? null : locationInProject(error.cause, root);
  if (inCause !== null) return inCause;
  const roots = [root, realpath(root)].map((one) => (one.endsWith(sep) ? one : one + sep));
  for (const line of (error.stack ?? "").split("\n")) {
    const location = firstLocation(line);
    if (location === null || location.file.includes(`${sep}node_modules${sep}`)) continue;
    if (roots.some((one) => location.file.startsWith(one))) return location;
  }
  return null;
}

function realpath(root: string): string {
  try {
    return realpathSync(root);
  } catch {
    return root;
  }
}
