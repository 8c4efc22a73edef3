import { isPlatformError } from "@aenv/contract";
import { expect, it } from "vitest";
import { MemoryStore } from "../stores/memory/store.ts";
import { Access } from "./access.ts";
import { Tokens, tokenRows } from "./tokens.ts";

async function openAccess() {
  const tokens = new Tokens(tokenRows(new MemoryStore()), () => new Date());
  const { token } = await tokens.create({ owner: "ada", roles: ["trainer"], scopes: ["shop"], maxInstances: 3 });
  const access = new Access(tokens, true);
  return { access, ada: await access.identify(`Bearer ${token}`) };
}

it("identifies a delegate as the caller for whom it was granted, with the same roles, scopes and limit", async () => {
  const { access, ada } = await openAccess();
  const { token } = access.delegates.grant(ada);
  expect(await access.identify(`Bearer ${token}`)).toEqual(ada);
});

it("refuses a delegate that was disposed, one of another server, and one whose token was revoked", async () => {
  const { access, ada } = await openAccess();
  const other = await openAccess();
  const ended = access.delegates.grant(ada);
  ended[Symbol.dispose]();
  const foreign = other.access.delegates.grant(other.ada);
  const revoked = access.delegates.grant(ada);
  await access.tokens.revoke(ada.tokenId ?? "");
  for (const { token } of [ended, foreign, revoked]) {
    await expect(access.identify(`Bearer ${token}`)).rejects.toSatisfy((error) => isPlatformError(error, "access.unauthenticated"));
  }
});
