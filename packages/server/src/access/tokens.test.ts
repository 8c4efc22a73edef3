import { describe, expect, it } from "vitest";
import { Collection } from "../stores/collection.ts";
import { MemoryStore } from "../stores/memory/store.ts";
import { Access, exposureWarning } from "./access.ts";
import { isInScope } from "./scopes.ts";
import { type TokenRow, Tokens } from "./tokens.ts";

function open(now: () => Date = () => new Date(0)) {
  const rows = new Collection<TokenRow>(new MemoryStore(), "token", () => ({}));
  return { rows, tokens: new Tokens(rows, now, { monotonicMs: () => now().getTime() }) };
}

describe("a token", () => {
  it("is returned once, and only its hash is stored", async () => {
    const { tokens, rows } = open();
    const { token, row } = await tokens.create({ owner: "ada", roles: ["trainer"] });
    expect(token).toMatch(/^aenv_[0-9a-f]{12}_[\w-]{27}$/);
    const kept = JSON.stringify(await rows.find(row.id));
    expect(kept).not.toContain(token.slice("aenv_".length + 13));
    expect(await tokens.verify(token)).toMatchObject({ owner: "ada", tokenId: row.id });
  });

  it("is refused if it is changed, truncated, unknown, expired or revoked", async () => {
    let now = 0;
    const { tokens } = open(() => new Date(now));
    const { token, row } = await tokens.create({ owner: "ada", roles: ["trainer"], expiresAt: new Date(60_000) });
    for (const wrong of ["", "x", token.slice(0, -1), `${token}x`, token.replace(/.$/, (last) => (last === "A" ? "B" : "A"))]) {
      expect(await tokens.verify(wrong)).toBeNull();
    }
    expect(await tokens.verify(token)).not.toBeNull();
    now = 60_000;
    expect(await tokens.verify(token)).toBeNull();
    now = 0;
    expect(await tokens.verify(token)).not.toBeNull();
    expect(await tokens.revoke(row.id)).toBe(true);
    expect(await tokens.verify(token)).toBeNull();
    expect(await tokens.revoke(row.id)).toBe(false);
  });

  it("records its last use, to the minute", async () => {
    let now = 1_000;
    const { tokens } = open(() => new Date(now));
    const { token } = await tokens.create({ owner: "ada", roles: ["trainer"] });
    await tokens.verify(token);
    await expect.poll(async () => (await tokens.list())[0]?.lastUsedAt).toBe("1970-01-01T00:00:01.000Z");
    now = 120_000;
    await tokens.verify(token);
    await expect.poll(async () => (await tokens.list())[0]?.lastUsedAt).toBe("1970-01-01T00:02:00.000Z");
  });

  it("is not created for an invalid owner, role or scope", async () => {
    const { tokens } = open();
    await expect(tokens.create({ owner: "a b", roles: ["trainer"] })).rejects.toThrow(/owner is 'a b'/);
    // The name of the platform, which owns the built-in environments, is no name of a caller.
    await expect(tokens.create({ owner: "_aenv", roles: ["publisher"] })).rejects.toThrow(/begin with a letter or digit/);
    await expect(tokens.create({ owner: "a", roles: [] })).rejects.toThrow(/give one or more of admin, publisher, trainer, agent/);
    await expect(tokens.create({ owner: "a", roles: ["trainer"], scopes: ["Tau2"] })).rejects.toThrow(/scope is 'Tau2'/);
  });

  it("is valid only for the environments of its scopes", async () => {
    const { tokens } = open();
    const { token } = await tokens.create({ owner: "ada", roles: ["trainer"], scopes: ["tau2", "shop-*"] });
    const caller = await tokens.verify(token);
    if (caller === null) throw new Error("the token was refused");
    expect(["tau2", "shop-eu", "shop", "tau"].map((name) => isInScope(caller, name))).toEqual([true, true, false, false]);
  });
});

/** A store that delays the result of its first read, which may be outdated when it arrives. */
class SlowStore extends MemoryStore {
  readonly hasRead = Promise.withResolvers<void>();
  readonly isLetGo = Promise.withResolvers<void>();

  override async get<T>(kind: string, key: string) {
    const found = await super.get<T>(kind, key);
    this.hasRead.resolve();
    await this.isLetGo.promise;
    return found;
  }
}

describe("a revocation", () => {
  it("applies to a verification that read the token before it, and to all later ones", async () => {
    const store = new SlowStore();
    const tokens = new Tokens(new Collection<TokenRow>(store, "token", () => ({})), () => new Date(0));
    const { token, row } = await tokens.create({ owner: "ada", roles: ["trainer"] });
    const verification = tokens.verify(token);
    await store.hasRead.promise;
    expect(await tokens.revoke(row.id)).toBe(true);
    store.isLetGo.resolve();
    expect(await verification).toBeNull();
    expect(await tokens.verify(token)).toBeNull();
  });
});

describe("a verified token", () => {
  it("is not cached for longer if the clock is set back, nor after it expires", async () => {
    let now = 3_600_000;
    let monotonic = 0;
    const rows = new Collection<TokenRow>(new MemoryStore(), "token", () => ({}));
    const tokens = new Tokens(rows, () => new Date(now), { monotonicMs: () => monotonic });
    const { token, row } = await tokens.create({ owner: "ada", roles: ["trainer"], expiresAt: new Date(now + 1_000) });
    expect(await tokens.verify(token)).not.toBeNull();
    now += 1_000;
    expect(await tokens.verify(token)).toBeNull();
    // Revoked by another server on the same store.
    await rows.remove(row.id);
    now = 0;
    expect(await tokens.verify(token)).not.toBeNull();
    monotonic = 2_000;
    expect(await tokens.verify(token)).toBeNull();
  });
});

describe("access", () => {
  it("causes a warning if it is off and other machines can reach the server", () => {
    expect(exposureWarning("0.0.0.0", false)).toMatch(/access is off and the server listens on 0\.0\.0\.0/);
    expect(["127.0.0.1", "::1", "localhost"].map((host) => exposureWarning(host, false))).toEqual([null, null, null]);
    expect(exposureWarning("0.0.0.0", true)).toBeNull();
  });

  it("requires a token only if it is on, and explains a refusal", async () => {
    const { tokens } = open();
    expect((await new Access(tokens, false).identify(undefined)).roles.has("admin")).toBe(true);
    const access = new Access(tokens, true);
    await expect(access.identify(undefined)).rejects.toThrow("Missing Authorization header");
    await expect(access.identify("Basic abc")).rejects.toThrow("Authorization header format should be Bearer <token>");
    await expect(access.identify("Bearer nope")).rejects.toMatchObject({ code: "access.unauthenticated", message: "Invalid token" });
    const { token } = await tokens.create({ owner: "ada", roles: ["trainer"] });
    const caller = await access.identify(`bearer ${token}`);
    expect(() => access.assertRole(caller, "publisher")).toThrow(/requires the role publisher; the token has trainer/);
    access.assertRole(caller, "publisher", "trainer");
  });
});
