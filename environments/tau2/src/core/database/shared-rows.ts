import { compareText, quoteJson } from "@aenv/benchmark";
import { writeJson } from "../../python/json/writer.ts";
import type { Dict, PyValue } from "../../python/values/values.ts";

/** A table's dump without its braces, and the position of each row in it. */
export interface RowsText {
  readonly keys: readonly string[];
  readonly bytes: Buffer;
  /** The first byte of each row, and one more entry for the end. Rows are separated by the two bytes `, `. */
  readonly starts: readonly number[];
}

/** The initial rows of a table. They never change, so their dump for hashing is made at most once. */
export class SharedRows<Row extends PyValue = PyValue> {
  readonly rows: Dict<Row>;
  #text: RowsText | null = null;

  constructor(rows: Dict<Row>) {
    this.rows = rows;
  }

  get text(): RowsText {
    this.#text ??= this.#write();
    return this.#text;
  }

  #write(): RowsText {
    const keys = [...this.rows.keys()].map(String).sort(compareText);
    const starts: number[] = [];
    const texts: string[] = [];
    let at = 0;
    for (const key of keys) {
      const text = rowText(key, this.rows.get(key) ?? null);
      starts.push(at);
      texts.push(text);
      at += text.length + 2;
    }
    starts.push(at);
    // The dump is ASCII: one byte per character.
    return { keys, bytes: Buffer.from(texts.join(", "), "latin1"), starts };
  }
}

export function rowText(key: string, row: PyValue): string {
  return `${quoteJson(key)}: ${writeJson(row, { sortKeys: true })}`;
}
