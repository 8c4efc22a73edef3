import { describe, expect, it } from "vitest";
import { httpServer, type Seen, sendJson } from "../../fixtures/http-server.ts";
import { TokenClient } from "./token-client.ts";

function answering(answer: (seen: Seen) => unknown) {
  return httpServer((seen, response) => sendJson(response, { success: true, code: 0, message: "", data: answer(seen) }));
}

const record = {
  id: "0a",
  owner: "ada",
  roles: ["trainer"],
  note: "",
  createdAt: "2026-01-01T00:00:00Z",
  expiresAt: null,
  lastUsedAt: null,
  maxInstanceCount: 5,
  scopes: [],
};

describe("TokenClient", () => {
  it("creates a token with roles, scopes and an expiry", async () => {
    await using server = await answering(() => ({ ...record, token: "aenv_0a_secret" }));
    const expiresAt = new Date("2027-01-01T00:00:00Z");
    const made = await new TokenClient(server.url, { apiKey: "k" }).create({
      owner: "ada",
      roles: ["trainer"],
      expiresAt,
      maxInstances: 5,
    });
    expect(made.token).toBe("aenv_0a_secret");
    expect(server.requests[0]).toMatchObject({ method: "POST", path: "/token", headers: { authorization: "Bearer k" } });
    expect(server.requests[0]?.json).toEqual({ owner: "ada", roles: ["trainer"], expiresAt: expiresAt.toISOString(), maxInstanceCount: 5 });
  });

  it("lists, revokes, and gets the token's owner", async () => {
    await using server = await answering(({ path }) => (path === "/whoami" ? { owner: "ada", roles: ["admin"], token: "0a" } : []));
    const tokens = new TokenClient(server.url);
    expect(await tokens.list({ owner: "a b" })).toEqual([]);
    await tokens.revoke("0a/b");
    expect(await tokens.whoAmI()).toMatchObject({ owner: "ada" });
    expect(server.requests.map(({ method, path, query }) => `${method} ${path} ${query.get("owner") ?? ""}`)).toEqual([
      "GET /token a b",
      "DELETE /token/0a%2Fb ",
      "GET /whoami ",
    ]);
  });

  it("refuses a list whose tokens it cannot read, and does not repeat a secret", async () => {
    await using server = await answering(() => [{ ...record, roles: ["king"], token: "aenv_0a_secret" }]);
    const failure = await new TokenClient(server.url).list().catch((error: unknown) => error);
    expect(failure).toMatchObject({
      message: expect.stringMatching(/^the list of tokens has an unexpected shape: 0\.roles\.0 must be one of/),
    });
    expect(String(failure)).not.toContain("secret");
  });

  it("distinguishes a missing token from other failures", async () => {
    await using server = await httpServer((_, response) =>
      sendJson(response, { success: false, code: 404, message: "none", data: null }, 404),
    );
    await expect(new TokenClient(server.url).revoke("x")).rejects.toMatchObject({ code: "access.token_not_found" });
  });

  it("rejects a response in an unexpected format", async () => {
    await using server = await answering(() => "what?");
    const tokens = new TokenClient(server.url);
    for (const ask of [() => tokens.create({ owner: "ada" }), () => tokens.list(), () => tokens.whoAmI()]) {
      await expect(ask()).rejects.toMatchObject({ name: "ValidationError" });
    }
  });
});
