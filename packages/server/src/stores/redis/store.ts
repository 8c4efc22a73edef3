import { randomBytes } from "node:crypto";
import { PlatformError } from "@aenv/contract";
import { checkQuery, checkRow, checkText, decode, encode, sortedIndexes } from "../row.ts";
import type { Indexes, InsertOptions, InsertResult, ListOptions, Store, Versioned } from "../store.ts";
import { parseAddress } from "./address.ts";
import { type ConnectionOptions, RedisConnection } from "./connection.ts";
import { indexEnd, Keys, type KindKeys } from "./keys.ts";
import { insertScript, listScript, removeScript, type Script, swapScript } from "./scripts.ts";

/**
 * Rows that several servers share.
 *
 * Each change is one script, so it is atomic. If a response is lost, the change is sent again with the same id, which the client
 * chose. The script stores a receipt under that id and, if it finds one, returns the same result again. So a swap whose response was
 * lost is never mistaken for another server's, and an insert is not repeated after another server removed the row. Only if Redis is
 * unreachable for longer than `outageMs`, a change fails with an error; then it may have been made.
 *
 * Durability is that of Redis: with `appendfsync always` a change survives a crash of Redis; with the default `everysec`, or after a
 * failover to a replica, the last second may be lost. Revisions are not reused even then.
 */
export class RedisStore implements Store {
  readonly name = "redis";
  readonly #connection: RedisConnection;
  readonly #keys: Keys;
  readonly #self = randomBytes(9).toString("base64url");
  #changes = 0;

  /** See `redis/address.ts` for the forms of the URL. Rejects if Redis cannot be reached now. */
  static async open(url: string, options: ConnectionOptions = {}): Promise<RedisStore> {
    const address = parseAddress(url);
    const keys = new Keys(address.prefix);
    const store = new RedisStore(await RedisConnection.open(address, options), keys);
    try {
      await store.#refuseEarlierBuild(address.prefix);
      return store;
    } catch (error) {
      await store.close();
      throw error;
    }
  }

  private constructor(connection: RedisConnection, keys: Keys) {
    this.#connection = connection;
    this.#keys = keys;
  }

  /** Earlier builds wrote rows of kind `replica`, and instances with other fields. A kind's revision counter is never deleted. */
  async #refuseEarlierBuild(prefix: string): Promise<void> {
    const { rev } = this.#keys.of("replica");
    if ((await this.#connection.run("reads", (client) => client.exists(rev))) === 0) return;
    throw new PlatformError(
      "store.invalid",
      `the Redis keys with the prefix '${prefix}' were written by an earlier build of this server. Delete them, or choose another prefix`,
    );
  }

  async get<T>(kind: string, key: string): Promise<Versioned<T> | null> {
    checkText(kind, key);
    const name = this.#keys.of(kind).row(key);
    const [rev, value] = await this.#connection.run("reads", (client) => client.hmget(name, "r", "v"));
    return typeof rev === "string" && typeof value === "string" ? { key, rev: Number(rev), value: decode<T>(value) } : null;
  }

  async insert<T>(kind: string, key: string, value: T, indexes: Indexes, options: InsertOptions = {}): Promise<InsertResult> {
    checkRow(kind, key, indexes);
    const keys = this.#keys.of(kind);
    const { limit } = options;
    const limited = limit === undefined ? keys.keys : keys.index(limit.index, limit.value);
    const names = [keys.row(key), keys.keys, keys.rev, this.#receipt(keys), limited];
    const args = [key, encode(value), encodeIndexes(indexes), keys.indexBase, this.#connection.receiptMs, limit?.max ?? ""];
    return (await this.#change(insertScript, names, args)) as InsertResult;
  }

  async swap<T>(kind: string, key: string, rev: number, value: T, indexes: Indexes): Promise<boolean> {
    checkRow(kind, key, indexes);
    const keys = this.#keys.of(kind);
    const names = [keys.row(key), keys.rev, this.#receipt(keys)];
    const args = [key, encode(value), encodeIndexes(indexes), keys.indexBase, this.#connection.receiptMs, rev];
    return (await this.#change(swapScript, names, args)) === 1;
  }

  async remove(kind: string, key: string, rev?: number): Promise<boolean> {
    checkText(kind, key);
    const keys = this.#keys.of(kind);
    const names = [keys.row(key), keys.keys, this.#receipt(keys)];
    return (await this.#change(removeScript, names, [key, keys.indexBase, this.#connection.receiptMs, rev ?? ""])) === 1;
  }

  async list<T>(kind: string, options: ListOptions): Promise<Versioned<T>[]> {
    checkQuery(kind, options);
    const { where, after, limit } = options;
    const keys = this.#keys.of(kind);
    const set = where === undefined ? keys.keys : keys.index(where.index, where.value);
    const from = after === undefined ? "-" : `(${after}`;
    const found = await this.#connection.run("reads", (client) => listScript.run(client, [set], [keys.rowBase, from, limit]));
    return readList<T>(found as string[]);
  }

  async count(kind: string, where: { readonly index: string; readonly value: string }): Promise<number> {
    checkQuery(kind, { where });
    const set = this.#keys.of(kind).index(where.index, where.value);
    return this.#connection.run("reads", (client) => client.zcard(set));
  }

  ping(): Promise<void> {
    return this.#connection.ping();
  }

  close(): Promise<void> {
    return this.#connection.close();
  }

  #change(script: Script, keys: readonly string[], args: readonly (string | number)[]): Promise<unknown> {
    return this.#connection.run("changes", (client) => script.run(client, keys, args));
  }

  /** The id of one change, the same for every repetition. */
  #receipt(keys: KindKeys): string {
    this.#changes += 1;
    return keys.done(`${this.#self}.${this.#changes}`);
  }
}

function encodeIndexes(indexes: Indexes): string {
  return JSON.stringify(sortedIndexes(indexes).map(([name, value]) => indexEnd(name, value)));
}

function readList<T>(found: readonly string[]): Versioned<T>[] {
  const rows: Versioned<T>[] = [];
  for (let i = 0; i < found.length; i += 3) {
    const [key, rev, value] = found.slice(i, i + 3) as [string, string, string];
    rows.push({ key, rev: Number(rev), value: decode<T>(value) });
  }
  return rows;
}
