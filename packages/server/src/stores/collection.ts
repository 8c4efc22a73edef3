import type { Indexes, InsertOptions, InsertResult, ListOptions, Store, Versioned } from "./store.ts";

/** One kind of row, typed, with its indexes derived from the value so that the two cannot disagree. */
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
   * Changes a row by a pure function, again and again until nobody came between; null from `change` means leave it.
   * Answers the row as it stands afterwards, or null if it is gone or was left.
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

  /** All rows that match, page by page: what it sees first may have changed when it ends. */
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
