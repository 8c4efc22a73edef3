import { createHash } from "node:crypto";
import { canonicalJson } from "@aenv/contract";

/** The digest of a JSON value, the same whatever the order of its keys. */
export function digestOf(value: unknown): string {
  return `sha256:${createHash("sha256").update(canonicalJson(value)).digest("hex")}`;
}
