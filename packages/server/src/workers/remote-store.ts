import type { Indexes, InsertResult, ListOptions, Store, Versioned } from "../stores/store.ts";
import type { Channel } from "./channel.ts";

/**
 * The server's store as a worker uses it. A worker reads rows, and records the use of tokens; only its server creates and removes rows,
 * because that has to do more than to change the store.
 */
export class RemoteStore implements Store {
  readonly name = "the store of the server";
  readonly #channel: Channel;

  constructor(channel: Channel) {
    this.#channel = channel;
  }

  get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    return this.#channel.ask({ what: "get", kind, key });
  }

  list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]> {
    return this.#channel.ask({ what: "list", kind, options });
  }

  swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean> {
    return this.#channel.ask({ what: "swap", kind, key, rev, value, indexes });
  }

  insert(): Promise<InsertResult> {
    return Promise.reject(new Error("a worker creates no rows"));
  }

  remove(): Promise<boolean> {
    return Promise.reject(new Error("a worker removes no rows"));
  }

  count(): Promise<number> {
    return Promise.reject(new Error("a worker counts no rows"));
  }

  async ping(): Promise<void> {}

  async close(): Promise<void> {}
}
