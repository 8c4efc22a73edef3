import { lookup } from "../../python/equality.ts";
import { dict } from "../../python/model/field-types.ts";
import { INVALID, type Type } from "../../python/model/model.ts";
import { Dict, type PyKey, type PyValue } from "../../python/values/values.ts";
import { copy, freeze } from "./copy.ts";
import { SharedRows } from "./shared-rows.ts";

/**
 * A dict of rows whose initial rows are shared by all instances: reads return them, `edit` copies a row before it is changed.
 * Rows that were edited or added are kept in the Map itself. Rows are never removed.
 */
export class Table<Row extends PyValue = PyValue> extends Dict<Row> {
  readonly shared: SharedRows<Row>;

  constructor(shared: SharedRows<Row>) {
    super();
    this.shared = shared;
  }

  /** The row to read; keys compare as in Python. */
  find(key: PyValue): Row | undefined {
    return lookup(this, key);
  }

  /** The row to change: a copy that belongs to this instance. Rows returned by earlier `find` calls are not updated. */
  edit(key: PyValue): Row | undefined {
    const row = this.find(key);
    if (row === undefined || super.has(key)) return row;
    const own = copy(row);
    super.set(key, own);
    return own;
  }

  /** The rows that this instance has edited or added. */
  ownRows(): [string, Row][] {
    return [...super.entries()].map(([key, row]) => [String(key), row]);
  }

  /** Shares the shared rows, and copies this instance's own. */
  override copyWith(copyRow: (row: Row) => Row): Table<Row> {
    const copied = new Table(this.shared);
    for (const [key, row] of super.entries()) copied.set(key, copyRow(row));
    return copied;
  }

  override get(key: PyKey): Row | undefined {
    return super.get(key) ?? this.shared.rows.get(key);
  }

  override has(key: PyKey): boolean {
    return super.has(key) || this.shared.rows.has(key);
  }

  override delete(key: PyKey): boolean {
    throw new Error(`rows of a table cannot be removed (key '${String(key)}')`);
  }

  override get size(): number {
    let size = this.shared.rows.size;
    for (const key of super.keys()) if (!this.shared.rows.has(key)) size++;
    return size;
  }

  override *entries(): MapIterator<[PyKey, Row]> {
    for (const [key, row] of this.shared.rows) yield [key, super.get(key) ?? row];
    for (const [key, row] of super.entries()) if (!this.shared.rows.has(key)) yield [key, row];
  }

  override *keys(): MapIterator<PyKey> {
    for (const [key] of this.entries()) yield key;
  }

  override *values(): MapIterator<Row> {
    for (const [, row] of this.entries()) yield row;
  }

  override [Symbol.iterator](): MapIterator<[PyKey, Row]> {
    return this.entries();
  }

  override forEach(visit: (row: Row, key: PyKey, table: Map<PyKey, Row>) => void): void {
    for (const [key, row] of this.entries()) visit(row, key, this);
  }
}

/** The type of a table field: a dict of rows by id that instances share. */
export function table<Row extends PyValue>(row: Type<Row>): Type<Table<Row>> {
  const rows = dict(row);
  return {
    read(input, report) {
      const read = rows.read(input, report);
      if (read === INVALID) return INVALID;
      freeze(read);
      return new Table(new SharedRows(read));
    },
  };
}
