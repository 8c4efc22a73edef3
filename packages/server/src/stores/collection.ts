import type { Indexes, InsertOptions, InsertResult, ListOptions, Store, Versioned } from "./store.ts";

/** Typed access to one kind of row. Indexes are derived from the value, so that they always match it. */
export class Collection<T> {
  readonly #store: Store;
  readonly #kind: string;
  readonly #indexesOf: (value: T) => Indexes;

  constructor(store: Store, kind: string, indexesOf: (value: T) => Indexes) {
    this.#store = store;
    this.#kind = kind;
    this.#indexesOf = indexesOf;
  }

  find(key: string): Promise<Versioned<T> | null> {
    return this.#store.get<T>(this.#kind, key);
  }

  insert(key: string, value: T, options?: InsertOptions): Promise<InsertResult> {
    return this.#store.insert(this.#kind, key, value, this.#indexesOf(value), options);
  }

  swap(row: Versioned<T>, value: T): Promise<boolean> {
    return this.#store.swap(this.#kind, row.key, row.rev, value, this.#indexesOf(value));
  }

  /**
   * Changes a row by a pure function, repeated until no concurrent change interferes; null from `change` leaves the row.
   * Returns the new row, or null if it does not exist or was left.
   */
  async update(key: string, change: (value: T) => T | null): Promise<T | null> {
    for (;;) {
      const row = await this.find(key);
      if (row === null) return null;
      const next = change(row.value);
      if (next === null) return null;
      if (await this.swap(row, next)) return next;
    }
  }

  remove(key: string, rev?: number): Promise<boolean> {
    return this.#store.remove(this.#kind, key, rev);
  }

  list(options: ListOptions): Promise<Versioned<T>[]> {
    return this.#store.list<T>(this.#kind, options);
  }

  /** All matching rows, page by page; not a snapshot. */
  async *each(where?: ListOptions["where"]): AsyncIterable<Versioned<T>> {
    let after: string | undefined;
    for (;;) {
      const page = await this.list({ ...(where !== undefined && { where }), ...(after !== undefined && { after }), limit: 500 });
      yield* page;
      const last = page.at(-1);
      if (last === undefined || page.length < 500) return;
      after = last.key;
    }
  }

  count(index: string, value: string): Promise<number> {
    return this.#store.count(this.#kind, { index, value });
  }
}
