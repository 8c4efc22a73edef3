import { PlatformError } from "@aenv/contract";
import type { Indexes, ListOptions } from "./store.ts";

/** Values are kept as JSON text in every store: what comes out is a copy, and the same copy whichever store it was. */
export function encode(value: unknown): string {
  const text = JSON.stringify(value);
  if (text === undefined) throw new TypeError(`a row's value must be JSON, not ${typeof value}`);
  return text;
}

export function decode<T>(text: string): T {
  return JSON.parse(text) as T;
}

/** The same indexes always in the same order, so that two texts of them can be compared. */
export function sortedIndexes(indexes: Indexes): [name: string, value: string][] {
  return Object.entries(indexes).sort(([one], [other]) => compareText(one, other));
}

/** The order of code points, which is the order of UTF-8 bytes; JavaScript's own puts 😀 before ﬀ. */
export function compareText(one: string, other: string): number {
  return Buffer.compare(Buffer.from(one), Buffer.from(other));
}

/** Half a surrogate pair cannot be written as UTF-8: two such keys would become the same key in some stores. */
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
