import { existsSync } from "node:fs";
import { PlatformError } from "@aenv/contract";
import type { ServerConfig } from "../config/config.ts";
import { openStore, sqliteFileOf } from "../stores/open.ts";
import { Tokens, tokenRows } from "./tokens.ts";

export interface NewAdmin {
  readonly id: string;
  readonly owner: string;
  /** Shown only once: the store keeps its hash. */
  readonly token: string;
  /** Ids of the administrators' tokens that were revoked. */
  readonly revoked: readonly string[];
}

/**
 * Creates an administrator's token directly in a server's store, to replace a lost one. It needs write access to the store. The server
 * may be running: it accepts the new token at once, and a revoked one for at most two seconds more.
 */
export async function resetAdmin(
  config: Pick<ServerConfig, "store">,
  { owner = "admin", revokesOthers = false }: { readonly owner?: string; readonly revokesOthers?: boolean } = {},
): Promise<NewAdmin> {
  assertStoreExists(config.store);
  const store = await openStore(config.store);
  try {
    const tokens = new Tokens(tokenRows(store), () => new Date());
    const { token, row } = await tokens.create({ owner, roles: ["admin"], note: "created by aenv token reset-admin" });
    const others = revokesOthers ? (await tokens.list()).filter(({ id, roles }) => id !== row.id && roles.includes("admin")) : [];
    for (const { id } of others) await tokens.revoke(id);
    return { id: row.id, owner, token, revoked: others.map(({ id }) => id) };
  } finally {
    await store.close();
  }
}

/** A token in a newly created store would be useless, because no server uses it. */
function assertStoreExists(url: string): void {
  if (/^memory:/i.test(url))
    throw new PlatformError(
      "store.invalid",
      "the store is in memory, which only its server can access; restart the server to get a new token",
    );
  const file = sqliteFileOf(url);
  if (file !== null && !existsSync(file))
    throw new PlatformError("store.invalid", `${file} does not exist; pass the server's home with --home, or its store with --store`);
}
