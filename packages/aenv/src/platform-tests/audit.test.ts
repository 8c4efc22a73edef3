import { describe, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { startChild } from "./child.ts";
import { projects, publish } from "./platform.ts";

interface Line {
  readonly msg: string;
  readonly level: number;
  readonly [field: string]: unknown;
}

describe("the audit log of a server", () => {
  it("records changes and refusals with owner and client address, and no secret", { timeout: 60_000 }, async () => {
    const child = await startChild({ access: "on", maxInstances: 3 });
    let secrets: string[] = [];
    let ids: string[] = [];
    let tokenId = "";
    let ref = "";
    try {
      const admin = { authorization: `Bearer ${child.token}`, "x-request-id": "by-admin" };
      const made = (await child.demand("POST", "/token", { owner: "ada", roles: ["publisher"] }, admin)) as { id: string; token: string };
      tokenId = made.id;
      const ada = { authorization: `Bearer ${made.token}`, "x-request-id": "by-ada" };
      ref = await publish(child, projects.probe, { headers: ada });
      const one = await child.create(ref, { environment_variables: { KEY: "zq-variable" } }, ada);
      const two = (await child.demand("POST", `/env-instance/${one.id}/fork`, { count: 2 }, ada)) as { id: string }[];
      ids = [one.id, ...two.map(({ id }) => id)];
      expect((await child.ask("POST", "/env-instance", { envName: ref }, ada)).status).toBe(429);
      await child.demand("DELETE", `/env-instance/${one.id}`, undefined, ada);
      const { token: agent } = (await child.demand("POST", "/token", { owner: "bob", roles: ["agent"] }, admin)) as { token: string };
      const bob = { authorization: `Bearer ${agent}`, "x-request-id": "by-bob" };
      expect((await child.ask("GET", "/token", undefined, bob)).status).toBe(403);
      for (let n = 0; n < 5; n++) expect((await child.ask("GET", "/env")).status).toBe(401);
      const wrong = { authorization: "Bearer aenv_0123456789ab_zqWrongTokenzqWrongToken123" };
      expect((await callTool(urlOf(child, one.id), "count", {}, { headers: wrong })).status).toBe(401);
      const denied = await fetch(urlOf(child, ids[1] ?? "", "/task/reward"), { method: "POST", headers: bob });
      expect(denied.status).toBe(403);
      await child.demand("DELETE", `/token/${tokenId}`, undefined, admin);
      secrets = [made.token, child.token, agent, "zq-variable", "zqWrongToken", String(one.agent_url)];
    } finally {
      await child.close();
    }
    const lines = child.log().split("\n").filter(Boolean);
    const trail = lines.map((line) => JSON.parse(line) as Line).filter(({ msg }) => msg === "audit");
    expect(trail.every(({ level }) => level === 30)).toBe(true);
    const client = "127.0.0.1";
    const by = (owner: string | null, requestId: unknown = `by-${owner}`) => ({ owner, requestId, client });
    expect(trail[0]).toMatchObject({ event: "server.started", access: "on" });
    expect(trail.at(-1)).toMatchObject({ event: "server.stopped" });
    const has = (event: Record<string, unknown>) => expect(trail).toContainEqual(expect.objectContaining(event));
    has({ event: "token.created", subjects: [tokenId], ...by("root", "by-admin") });
    has({ event: "environment.published", subjects: [ref], ...by("ada") });
    has({ event: "instance.created", subjects: [ids[0]], ...by("ada") });
    has({ event: "instance.created", subjects: ids.slice(1), ...by("ada") });
    has({ event: "instance.deleted", subjects: [ids[0]], ...by("ada") });
    has({ event: "token.revoked", subjects: [tokenId], ...by("root", "by-admin") });
    has({ event: "refused", port: "control", status: 429, ...by("ada") });
    has({ event: "refused", port: "control", status: 403, ...by("bob") });
    has({ event: "refused", port: "control", status: 401, ...by(null, expect.any(String)) });
    has({ event: "refused.more", port: "control", status: 401, client, count: 4 });
    has({ event: "refused", port: "data", status: 401, ...by(null, expect.any(String)) });
    has({ event: "refused", port: "data", status: 403, ...by("bob") });
    for (const secret of secrets) expect(lines.filter((line) => line.includes(secret))).toEqual([]);
  });
});
