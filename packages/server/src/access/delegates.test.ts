import { isPlatformError } from "@aenv/contract";
import { expect, it } from "vitest";
import { MemoryStore } from "../stores/memory/store.ts";
import { Access } from "./access.ts";
import { Delegates } from "./delegates.ts";
import { Tokens, tokenRows } from "./tokens.ts";

async function openAccess() {
  const tokens = new Tokens(tokenRows(new MemoryStore()), () => new Date());
  const { token } = await tokens.create({ owner: "ada", roles: ["trainer"], scopes: ["shop"], maxInstances: 3 });
  const delegates = new Delegates();
  const access = new Access(tokens, true, delegates);
  return { access, delegates, ada: await access.identify(`Bearer ${token}`) };
}

it("identifies a delegate as the caller for whom it was granted, with the same roles, scopes and limit", async () => {
  const { access, delegates, ada } = await openAccess();
  const { token } = delegates.grant(ada);
  expect(await access.identify(`Bearer ${token}`)).toEqual(ada);
});

it("refuses a delegate that was disposed, one of another server, and one whose token was revoked", async () => {
  const { access, delegates, ada } = await openAccess();
  const other = await openAccess();
  const ended = delegates.grant(ada);
  ended[Symbol.dispose]();
  const foreign = other.delegates.grant(other.ada);
  const revoked = delegates.grant(ada);
  await access.tokens.revoke(ada.tokenId ?? "");
  for (const { token } of [ended, foreign, revoked]) {
    await expect(access.identify(`Bearer ${token}`)).rejects.toSatisfy((error) => isPlatformError(error, "access.unauthenticated"));
  }
});
