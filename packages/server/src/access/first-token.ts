import type { Access } from "./access.ts";
import type { TokenRow, Tokens } from "./tokens.ts";

/** Creates an administrator's token if tokens are required and there is none yet; else null. */
export async function createFirstToken(access: Access, tokens: Tokens, onCreated: (row: TokenRow) => void): Promise<string | null> {
  if (!access.isOn || (await tokens.list()).length > 0) return null;
  const { token, row } = await tokens.create({ owner: "admin", roles: ["admin"], note: "created at the first start" });
  onCreated(row);
  return token;
}
