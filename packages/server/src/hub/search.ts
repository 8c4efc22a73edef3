import { PlatformError } from "@aenv/contract";
import type { Caller } from "../access/access.ts";
import type { Collection } from "../stores/collection.ts";
import type { VersionRow } from "./environment-version.ts";
import { maySee } from "./rights.ts";
import { byNewest } from "./versions.ts";

export interface ListQuery {
  readonly offset?: number;
  readonly limit?: number;
  /** Words, each of which is in the name, the description or a tag. */
  readonly query?: string;
  /** One, or several that it must all have. */
  readonly tag?: string | readonly string[];
  readonly name?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** How many there are on all pages. */
  readonly total: number;
}

const MAX_LIMIT = 1_000;

/** Finds versions by name, tag and words; only what the caller may see is found or counted. */
export async function searchFor(shelf: Collection<VersionRow>, asked: ListQuery, caller: Caller): Promise<Page<VersionRow>> {
  const { offset = 0, limit = 100, query = "", tag = [], name } = asked;
  if (!Number.isInteger(offset) || offset < 0) throw invalid("offset", offset, "a whole number from 0");
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) throw invalid("limit", limit, `a whole number from 1 to ${MAX_LIMIT}`);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = typeof tag === "string" ? [tag] : tag;
  const found: VersionRow[] = [];
  const where = name === undefined ? { index: "all", value: "yes" } : { index: "name", value: name };
  for await (const { value } of shelf.each(where)) {
    if (maySee(value, caller) && wanted.every((one) => value.tags.includes(one)) && holdsAll(value, words)) found.push(value);
  }
  found.sort((one, other) => (one.name === other.name ? byNewest(one, other) : one.name < other.name ? -1 : 1));
  return { items: found.slice(offset, offset + limit), total: found.length };
}

function holdsAll({ name, description, tags }: VersionRow, words: readonly string[]): boolean {
  const text = [name, description, ...tags].join("\n").toLowerCase();
  return words.every((word) => text.includes(word));
}

function invalid(field: string, value: unknown, rule: string): PlatformError {
  return new PlatformError("request.invalid", `${field} is ${String(value)}; it must be ${rule}`, { details: { field } });
}
