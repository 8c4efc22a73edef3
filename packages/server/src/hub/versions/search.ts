import { PlatformError } from "@aenv/contract";
import type { Caller } from "../../access/access.ts";
import type { VersionRow } from "./environment-version.ts";
import { maySee } from "./rights.ts";
import { keyOf, type VersionRows } from "./version-index.ts";

export interface ListQuery {
  readonly offset?: number;
  readonly limit?: number;
  /** Every word must occur in the name, the description or a tag. */
  readonly query?: string;
  /** One tag, or several that must all match. */
  readonly tag?: string | readonly string[];
  readonly name?: string;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** The number of items on all pages. */
  readonly total: number;
}

const MAX_LIMIT = 1_000;

/** Searches by name, tag and words; counts only versions that the caller may see. Reads only the rows of the page. */
export async function searchFor(rows: VersionRows, listQuery: ListQuery, caller: Caller): Promise<Page<VersionRow>> {
  const { offset = 0, limit = 100, query = "", tag = [], name } = listQuery;
  if (!Number.isInteger(offset) || offset < 0) throw invalid("offset", offset, "a whole number from 0");
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT) throw invalid("limit", limit, `a whole number from 1 to ${MAX_LIMIT}`);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const tags = typeof tag === "string" ? [tag] : tag;
  const found = (await rows.index.sorted()).filter(
    (row) =>
      (name === undefined || row.name === name) &&
      maySee(row, caller) &&
      tags.every((one) => row.tags.includes(one)) &&
      words.every((word) => row.text.includes(word)),
  );
  const page = await Promise.all(found.slice(offset, offset + limit).map((row) => rows.find(keyOf(row))));
  // The version may have been removed or made private since it was indexed.
  const items = page.flatMap((row) => (row !== null && maySee(row.value, caller) ? row.value : []));
  return { items, total: found.length };
}

function invalid(field: string, value: unknown, rule: string): PlatformError {
  return new PlatformError("request.invalid", `${field} is ${String(value)}; it must be ${rule}`, { details: { field } });
}
