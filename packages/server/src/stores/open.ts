import { isAbsolute } from "node:path";
import { PlatformError } from "@aenv/contract";
import type { Store } from "./store.ts";

/**
 * Opens the store that a URL names: `memory:`, `sqlite:/path/server.db` or just the path, `redis://…`, `rediss://…`,
 * `redis+sentinel://…`, `redis+cluster://…`. Imports only that store's code.
 */
export async function openStore(url: string): Promise<Store> {
  const [, scheme = "", rest = ""] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  switch (scheme.toLowerCase()) {
    case "memory": {
      if (rest !== "" && rest !== "//") throw refuse(`'memory:' takes nothing after the colon`);
      const { MemoryStore } = await import("./memory/store.ts");
      return new MemoryStore();
    }
    case "sqlite":
      return openSqlite(sqlitePath(rest));
    case "redis":
    case "rediss":
    case "redis+sentinel":
    case "rediss+sentinel":
    case "redis+cluster":
    case "rediss+cluster": {
      const { RedisStore } = await import("./redis/store.ts");
      return RedisStore.open(url);
    }
    case "":
      // A single word is more likely a mistake than a file name.
      if (isAbsolute(url) || /[\\/]/.test(url) || /\.(?:db|sqlite3?)$/.test(url)) return openSqlite(url);
      throw refuse(url === "" ? "it is empty" : `'${url}' is neither a kind of store nor a file`);
    default:
      throw refuse(`'${scheme}:' is not a kind of store`);
  }
}

/** The file of a SQLite store; null for other kinds. */
export function sqliteFileOf(url: string): string | null {
  const [, scheme, rest = ""] = /^([a-z][a-z0-9+.-]*):(.*)$/is.exec(url) ?? [];
  if (scheme === undefined) return url;
  return scheme.toLowerCase() === "sqlite" ? sqlitePath(rest) : null;
}

function sqlitePath(rest: string): string {
  return rest.replace(/^\/\/(?=\/)/, "");
}

async function openSqlite(path: string): Promise<Store> {
  if (path === "" || path.endsWith("/")) throw refuse("it names no file");
  if (path.startsWith("//")) throw refuse("a SQLite file cannot be on another host");
  if (path.startsWith("~")) throw refuse("'~' is not expanded: write the absolute path");
  if (path === ":memory:") throw refuse("for a store in memory write memory:");
  const { SqliteStore } = await import("./sqlite/store.ts");
  return SqliteStore.open(path);
}

function refuse(why: string): PlatformError {
  const forms =
    "memory:, sqlite:/path/server.db, redis://host:6379, rediss://host, redis+sentinel://host,host/group or redis+cluster://host,host";
  return new PlatformError("store.invalid", `the store's address cannot be used: ${why}. Write ${forms}`);
}
