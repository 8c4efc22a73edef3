/**
 * A value and the revision under which it was read; a change names the revision it is based on. A key's revisions only grow,
 * also when it was removed and came back.
 */
export interface Versioned<T> {
  readonly key: string;
  readonly rev: number;
  readonly value: T;
}

/** The fields by which rows of a kind are found and counted: `{ owner: "ada", status: "Running" }`. */
export type Indexes = Readonly<Record<string, string>>;

export interface InsertOptions {
  /** Insert only while fewer than `max` rows have this index value; checked and done as one step. */
  readonly limit?: { readonly index: string; readonly value: string; readonly max: number };
}

/** A key that is there already `exists`, whatever the limit. */
export type InsertResult = "inserted" | "exists" | "limit";

export interface ListOptions {
  readonly where?: { readonly index: string; readonly value: string };
  /** Rows whose key comes after this one; keys are in the order of their code points. */
  readonly after?: string;
  readonly limit: number;
}

/**
 * Rows of JSON by kind and key. Every change is one atomic step and names what it expects to find, so that replicas
 * that share a store never overwrite each other unseen.
 */
export interface Store {
  readonly name: string;
  get<T>(kind: string, key: string): Promise<Versioned<T> | null>;
  insert<T>(kind: string, key: string, value: T, indexes: Indexes, options?: InsertOptions): Promise<InsertResult>;
  /** False if the row is gone or someone changed it since `rev`. */
  swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean>;
  /** False if the row was not there (or, with `rev`, has changed). */
  remove(kind: string, key: string, rev?: number): Promise<boolean>;
  list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]>;
  count(kind: string, where: { readonly index: string; readonly value: string }): Promise<number>;
  /** Rejects while the store cannot be reached. */
  ping(): Promise<void>;
  close(): Promise<void>;
}
