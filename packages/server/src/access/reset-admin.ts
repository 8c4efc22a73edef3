import { existsSync } from "node:fs";
import { PlatformError } from "@aenv/contract";
import type { ServerConfig } from "../config.ts";
import { openStore, sqliteFileOf } from "../stores/open.ts";
import { Tokens, tokenRows } from "./tokens.ts";

export interface NewAdmin {
  readonly id: string;
  readonly owner: string;
  /** Shown this once: only its hash is kept. */
  readonly token: string;
  /** Ids of the administrators' tokens that were revoked. */
  readonly revoked: readonly string[];
}

/**
 * Makes an administrator's token in the store of a server, for a lost one. Whoever may write to the store may do that, and nobody
 * else. The server may run meanwhile: it knows the new token at once, and takes a revoked one for two seconds more at the most.
 */
export async function resetAdmin(
  config: Pick<ServerConfig, "store">,
  { owner = "admin", revokesOthers = false }: { readonly owner?: string; readonly revokesOthers?: boolean } = {},
): Promise<NewAdmin> {
  demandStoreThere(config.store);
  const store = await openStore(config.store);
  try {
    const tokens = new Tokens(tokenRows(store), () => new Date());
    const { token, row } = await tokens.create({ owner, roles: ["admin"], note: "made by aenv token reset-admin" });
    const others = revokesOthers ? (await tokens.list()).filter(({ id, roles }) => id !== row.id && roles.includes("admin")) : [];
    for (const { id } of others) await tokens.revoke(id);
    return { id: row.id, owner, token, revoked: others.map(({ id }) => id) };
  } finally {
    await store.close();
  }
}

/** A new store would be no server's, and a token in it good for nothing. */
function demandStoreThere(url: string): void {
  if (/^memory:/i.test(url))
    throw new PlatformError(
      "store.invalid",
      "the store is in memory, where only its server reaches it; restart the server for a new token",
    );
  const file = sqliteFileOf(url);
  if (file !== null && !existsSync(file))
    throw new PlatformError(
      "store.invalid",
      `no server has kept its data in ${file}; name its home with --home, or its store with --store`,
    );
}
