import { realpathSync } from "node:fs";
import { sep } from "node:path";
import { PlatformError } from "@aenv/contract";
import { firstLocation, type SourceLocation } from "./source-location.ts";

/** The same error with the place in its details, unless it has one or there is none. */
export function withLocation(error: PlatformError, place: SourceLocation | null): PlatformError {
  if (place === null || error.details.place !== undefined) return error;
  const { code, message, cause, details, retryable } = error;
  return new PlatformError(code, message, { cause: cause ?? error, details: { ...details, place }, retryable });
}

/** The author's line nearest to a failure or to what caused it: not one of Node's, nor of an installed package. */
export function locationInProject(error: unknown, root: string): SourceLocation | null {
  if (!(error instanceof Error)) return null;
  // What was thrown first is nearest to the mistake.
  const before = error.cause === undefined || error.cause === error ? null : locationInProject(error.cause, root);
  if (before !== null) return before;
  const roots = [root, realpath(root)].map((one) => (one.endsWith(sep) ? one : one + sep));
  for (const line of (error.stack ?? "").split("\n")) {
    const place = firstLocation(line);
    if (place === null || place.file.includes(`${sep}node_modules${sep}`)) continue;
    if (roots.some((one) => place.file.startsWith(one))) return place;
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
