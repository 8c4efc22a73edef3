import type { Tokens } from "./tokens.ts";

/** The note that marks tokens of this setting, so that those of its earlier values are found. */
const NOTE = "the setting adminToken";

/**
 * Makes the operator's choice the administrator's token, and revokes those of earlier values of the setting. Other tokens of
 * administrators are kept. Servers on one store may do this at the same time.
 */
export async function useAdminToken(tokens: Tokens, token: string): Promise<void> {
  const id = await tokens.accept(token, { owner: "admin", roles: ["admin"], note: NOTE });
  for (const row of await tokens.list()) if (row.note === NOTE && row.id !== id) await tokens.revoke(row.id);
}
