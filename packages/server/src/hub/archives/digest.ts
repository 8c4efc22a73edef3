import { createHash } from "node:crypto";
import { PlatformError } from "@aenv/contract";

const DIGEST = /^sha256:([0-9a-f]{64})$/;
const MAX_DEPTH = 100;

/** A digest as everybody writes it, `sha256:` and 64 lower-case hex digits; nothing else becomes part of a path. */
export function parseDigest(text: string): string {
  if (DIGEST.test(text)) return text;
  throw new PlatformError("request.invalid", `'${text.slice(0, 100)}' is no digest; write 'sha256:' and 64 lower-case hex digits`);
}

/** The hex digits of a digest: a safe file name. */
export function hexOf(digest: string): string {
  return parseDigest(digest).slice("sha256:".length);
}

export function digestOf(bytes: Uint8Array | string): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}

/** JSON with sorted keys and no spaces: equal values always give equal text. */
export function canonicalJson(value: unknown, depth = 0): string {
  if (depth > MAX_DEPTH) throw new PlatformError("environment.invalid", `the config is nested deeper than ${MAX_DEPTH} levels`);
  if (Array.isArray(value)) return `[${value.map((item) => canonicalJson(item ?? null, depth + 1)).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const fields = Object.entries(value)
    .filter(([, field]) => field !== undefined)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([key, field]) => `${JSON.stringify(key)}:${canonicalJson(field, depth + 1)}`);
  return `{${fields.join(",")}}`;
}
