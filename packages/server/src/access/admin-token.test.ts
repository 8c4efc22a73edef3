import { describe, expect, it } from "vitest";
import { MemoryStore } from "../stores/memory/store.ts";
import { useAdminToken } from "./admin-token.ts";
import { Tokens, tokenRows } from "./tokens.ts";

const first = `aenv_0123456789ab_${"a".repeat(27)}`;
const second = `aenv_ba9876543210_${"b".repeat(27)}`;

describe("the setting adminToken", () => {
  it("is the administrator's token, on every server of the store", async () => {
    const { tokens } = open();
    await Promise.all([useAdminToken(tokens, first), useAdminToken(tokens, first)]);
    expect(await tokens.verify(first)).toMatchObject({ owner: "admin", roles: new Set(["admin"]) });
    expect(await tokens.list()).toHaveLength(1);
  });

  it("revokes its earlier value when it is changed, and no other token", async () => {
    const { tokens } = open();
    const other = await tokens.create({ owner: "ada", roles: ["admin"] });
    await useAdminToken(tokens, first);
    await useAdminToken(tokens, second);
    const found = await Promise.all([first, second, other.token].map((token) => tokens.verify(token)));
    expect(found.map((caller) => caller?.owner ?? null)).toEqual([null, "admin", "ada"]);
  });

  it("is refused if it has another form, or the id of another token; the error does not show it", async () => {
    const { tokens } = open();
    const error = await useAdminToken(tokens, "my-secret").catch((error: Error) => error.message);
    expect(error).toContain("is not aenv_ID_SECRET");
    expect(error).not.toContain("my-secret");
    await useAdminToken(tokens, first);
    await expect(useAdminToken(tokens, first.replace(/.$/, "b"))).rejects.toThrow("another token with the id 0123456789ab");
    expect(await tokens.verify(first)).not.toBeNull();
  });
});

function open() {
  const store = new MemoryStore();
  return { tokens: new Tokens(tokenRows(store), () => new Date()) };
}
