import { PlatformError } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import { sqliteFileOf } from "../stores/open.ts";

/** The SQLite file of a server; other stores are refused, with the way to do it there. */
export function storeFileOf({ store, home }: Pick<ServerConfig, "store" | "home">, doing: "back up" | "restore"): string {
  const file = sqliteFileOf(store);
  if (file !== null) return file;
  const why = /^memory:/i.test(store)
    ? "the store is in memory and ends with its server"
    : doing === "back up"
      ? `the store is a Redis, which has backups of its own: save it with BGSAVE and copy its dump.rdb, then copy ${home}/blobs, in this order`
      : `the store is a Redis: load the dump.rdb of the backup into it, and copy the folder blobs of the backup to ${home}/blobs`;
  throw new PlatformError("store.invalid", `aenv can ${doing} only a SQLite store; ${why}`);
}
