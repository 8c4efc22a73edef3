import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { canonicalJson } from "@aenv/contract";

/** Digests by the JSON of their value. The tools and the provenance of an episode are those of the one before, nearly always. */
const recent = new Map<string, string>();
const MOST_RECENT = 32;
const LONGEST_RECENT = 64 * 1024;

/** The digest of a JSON value, the same whatever the order of its keys. */
export function digestOf(value: unknown): string {
  const json = JSON.stringify(value) ?? "null";
  const known = recent.get(json);
  if (known !== undefined) return known;
  const digest = `sha256:${createHash("sha256").update(canonicalJson(value)).digest("hex")}`;
  if (json.length > LONGEST_RECENT) return digest;
  if (recent.size >= MOST_RECENT) recent.clear();
  recent.set(json, digest);
  return digest;
}

export function digestOfFile(path: string): string {
  return `sha256:${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
}
