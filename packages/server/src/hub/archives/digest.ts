import { createHash } from "node:crypto";
import { PlatformError } from "@aenv/contract";

const DIGEST = /^sha256:([0-9a-f]{64})$/;

/** A digest: `sha256:` and 64 lower-case hex digits. Nothing else may become part of a path. */
export function parseDigest(text: string): string {
  if (DIGEST.test(text)) return text;
  throw new PlatformError("request.invalid", `'${text.slice(0, 100)}' is not a digest; write 'sha256:' and 64 lower-case hex digits`);
}

/** The hex digits of a digest: a safe file name. */
export function hexOf(digest: string): string {
  return parseDigest(digest).slice("sha256:".length);
}

export function digestOf(bytes: Uint8Array | string): string {
  return `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
}
