import { PlatformError } from "@aenv/contract";
import type { Indexes, ListOptions } from "./store.ts";

/** Every store keeps values as JSON text, so that reads return copies and all stores behave alike. */
export function encode(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a row's value must be JSON, not ${typeof value}`);
  return text;
}

export function decode<T>(text: string): T {
  return JSON.parse(text) as T;
}

/** In a fixed order, so that encoded indexes can be compared. */
export function sortedIndexes(indexes: Indexes): [name: string, value: string][] {
  return Object.entries(indexes).sort(([one], [other]) => compareText(one, other));
}

/** The order of code points, which is the order of UTF-8 bytes; JavaScript's own order puts 😀 before ﬀ. */
export function compareText(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** A lone surrogate cannot be encoded as UTF-8: in some stores two such keys would become equal. */
export function checkText(...texts: readonly string[]): void {
  for (const text of texts) {
    if (!text.isWellFormed()) throw new PlatformError("request.invalid", `${JSON.stringify(text)} is not well-formed Unicode`);
  }
}

export function checkRow(kind: string, key: string, indexes: Indexes): void {
  checkText(kind, key);
  for (const [name, value] of Object.entries(indexes)) checkText(name, value);
}

export function checkQuery(kind: string, { where, after = "" }: Pick<ListOptions, "where" | "after">): void {
  checkText(kind, after, where?.index ?? "", where?.value ?? "");
}
