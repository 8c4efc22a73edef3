/**
 * A value and its revision. A change names the revision that it is based on. The revisions of a key only grow, also when the key is
 * removed and inserted again.
 */
export interface Versioned<T> {
  readonly key: string;
  readonly rev: number;
  readonly value: T;
}

/** The fields by which rows of a kind are found and counted: `{ owner: "ada", status: "Running" }`. */
export type Indexes = Readonly<Record<string, string>>;

export interface InsertOptions {
  /** Insert only while fewer than `max` rows have this index value; checked atomically. */
  readonly limit?: { readonly index: string; readonly value: string; readonly max: number };
}

/** `exists` takes precedence over `limit`. */
export type InsertResult = "inserted" | "exists" | "limit";

export interface ListOptions {
  readonly where?: { readonly index: string; readonly value: string };
  /** Rows whose key comes after this one; keys are in the order of their code points. */
  readonly after?: string;
  readonly limit: number;
}

/**
 * Rows of JSON by kind and key. Every change is atomic and names the state it expects, so that servers that share a store never
 * overwrite each other's changes unnoticed.
 */
export interface Store {
  readonly name: string;
  get<T>(kind: string, key: string): Promise<Versioned<T> | null>;
  insert<T>(kind: string, key: string, value: T, indexes: Indexes, options?: InsertOptions): Promise<InsertResult>;
  /** Compare-and-set: false if the row is gone or has changed since `rev`. */
  swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean>;
  /** False if the row does not exist or, with `rev`, has changed. */
  remove(kind: string, key: string, rev?: number): Promise<boolean>;
  list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]>;
  count(kind: string, where: { readonly index: string; readonly value: string }): Promise<number>;
  /**
   * Removes what earlier changes have left of removed and replaced values in the store's files. False if another process prevents it for
   * now. Absent for a store that leaves nothing.
   */
  scrub?(): Promise<boolean>;
  /** Rejects while the store cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
