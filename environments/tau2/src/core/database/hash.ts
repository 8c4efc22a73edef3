import { createHash, type Hash } from "node:crypto";
import { compareText, quoteJson } from "@aenv/benchmark";
import { writeJson } from "../../python/json/writer.ts";
import { fieldsOf, type PyObject } from "../../python/values/objects.ts";
import type { PyValue } from "../../python/values/values.ts";
import { rowText, type SharedRows } from "./shared-rows.ts";
import { Table } from "./table.ts";

/** The reference's hash of a value: sha256 of its dump as JSON with sorted keys. */
export function hashValue(value: PyValue): string {
  return createHash("sha256")
    .update(writeJson(value, { sortKeys: true }), "latin1")
    .digest("hex");
}

/**
 * The same hash of a database, at a cost that depends on what has changed: only the instance's own rows are written,
 * and hashing resumes from the last checkpoint before the first change.
 */
export function hashDatabase(database: PyObject): string {
  const parts = partsOf(database);
  const key = parts.map((part) => (typeof part === "string" ? part : `${part.start}-${part.end}`)).join("\0");
  const last = lastDigest.get(database);
  if (last?.key === key) return last.digest;
  const digest = digestOf(parts);
  lastDigest.set(database, { key, digest });
  return digest;
}

/** Most tool calls only read: then the parts and the digest are unchanged. */
const lastDigest = new WeakMap<PyObject, { key: string; digest: string }>();

/** A piece of the dump: text of this instance, or bytes of shared rows. */
type Part = string | { readonly rows: SharedRows; readonly start: number; readonly end: number };

function partsOf(database: PyObject): Part[] {
  const parts: Part[] = [];
  let opening = "{";
  for (const [name, value] of fieldsOf(database).sort(([a], [b]) => compareText(a, b))) {
    const head = `${opening}${quoteJson(name)}: `;
    if (value instanceof Table) {
      parts.push(`${head}{`, ...partsOfTable(value), "}");
    } else parts.push(head + writeJson(value, { sortKeys: true }));
    opening = ", ";
  }
  parts.push(opening === "{" ? "{}" : "}");
  return parts;
}

function partsOfTable(table: Table): Part[] {
  const own = table.ownRows().sort(([a], [b]) => compareText(a, b));
  const { keys, starts } = table.shared.text;
  const parts: Part[] = [];
  let next = 0;
  const share = (until: number): void => {
    if (until > next) parts.push({ rows: table.shared, start: starts[next] ?? 0, end: (starts[until] ?? 0) - 2 });
    next = until;
  };
  for (const [key, row] of own) {
    const place = placeOf(keys, key);
    share(place);
    parts.push(rowText(key, row));
    if (keys[place] === key) next = place + 1;
  }
  share(keys.length);
  return parts.flatMap((part, i) => (i === 0 ? [part] : [", ", part]));
}

/** The index of the first key that is not less than `key`. */
function placeOf(keys: readonly string[], key: string): number {
  let low = 0;
  let high = keys.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compareText(keys[middle] ?? "", key) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const STEP = 1 << 18;

/** Hash states at increasing positions in the dump of an unchanged database. */
interface SharedPrefix {
  /** The parts of that dump; any database whose dump starts with the same bytes can use the checkpoints. */
  readonly parts: Part[];
  readonly checkpoints: { readonly at: number; readonly hash: Hash }[];
}

const prefixes = new WeakMap<SharedRows, SharedPrefix>();

function digestOf(parts: readonly Part[]): string {
  const prefix = prefixOf(parts);
  const shared = prefix === null ? 0 : commonLength(prefix.parts, parts);
  const from = prefix?.checkpoints.findLast(({ at }) => at <= shared);
  const hash = from?.hash.copy() ?? createHash("sha256");
  let at = 0;
  for (const part of parts) {
    const size = sizeOf(part);
    const skip = Math.max(0, (from?.at ?? 0) - at);
    if (skip < size) feed(hash, part, skip, at, prefix, shared);
    at += size;
  }
  return hash.digest("hex");
}

function feed(hash: Hash, part: Part, skip: number, at: number, prefix: SharedPrefix | null, shared: number): void {
  if (typeof part === "string") {
    hash.update(skip === 0 ? part : part.slice(skip), "latin1");
    return;
  }
  const { bytes } = part.rows.text;
  for (let start = part.start + skip; start < part.end; start += STEP) {
    const end = Math.min(start + STEP, part.end);
    hash.update(bytes.subarray(start, end));
    const reached = at + end - part.start;
    const last = prefix?.checkpoints.at(-1)?.at ?? 0;
    if (prefix !== null && reached <= shared && reached >= last + STEP) prefix.checkpoints.push({ at: reached, hash: hash.copy() });
  }
}

function prefixOf(parts: readonly Part[]): SharedPrefix | null {
  const first = parts.find((part) => typeof part !== "string");
  if (first === undefined) return null;
  let prefix = prefixes.get(first.rows);
  if (prefix === undefined) {
    prefix = { parts: untouched(parts), checkpoints: [] };
    prefixes.set(first.rows, prefix);
  }
  return prefix;
}

/** The parts of a database without own rows, as far as these parts show them. */
function untouched(parts: readonly Part[]): Part[] {
  const route: Part[] = [];
  for (const part of parts) {
    if (typeof part !== "string") {
      if (part.start !== 0) break;
      const end = part.rows.text.bytes.length;
      route.push({ ...part, end });
      if (part.end !== end) break;
    } else route.push(part);
  }
  return route;
}

/** The number of leading bytes that two dumps have in common, found by comparing parts. */
function commonLength(prefixParts: readonly Part[], parts: readonly Part[]): number {
  let length = 0;
  for (const [i, part] of parts.entries()) {
    const other = prefixParts[i];
    if (other === undefined) return length;
    if (typeof part === "string" || typeof other === "string") {
      if (part !== other) return length;
      length += sizeOf(part);
      continue;
    }
    if (part.rows !== other.rows || part.start !== other.start) return length;
    length += Math.min(part.end, other.end) - part.start;
    if (part.end !== other.end) return length;
  }
  return length;
}

function sizeOf(part: Part): number {
  return typeof part === "string" ? part.length : part.end - part.start;
}
