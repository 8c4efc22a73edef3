import { instancePrefix } from "@aenv/contract";
import { afterEach, describe, expect, it } from "vitest";
import { roleKeysOf } from "../instances/role-links.ts";
import { AGENT_KEY, ID, type OpenGateway, openGateway } from "./fixtures/gateway.ts";

const open: OpenGateway[] = [];
afterEach(async () => {
  for (const gateway of open.splice(0)) await gateway[Symbol.asyncDispose]();
});

/** A gateway with one instance of the roles white and black, whose sandbox answers with the path that it was asked for. */
async function start(
  options: Parameters<typeof openGateway>[1] = {},
): Promise<{ gateway: OpenGateway; keys: Record<string, string>; other: Record<string, string> }> {
  const gateway = await openGateway((request, response) => response.end(request.url), options);
  open.push(gateway);
  const second = { id: "shop-second", agentKey: "cccccccccccccccccccc", linkSecret: "second-secret" };
  const { slot, ...common } = await gateway.put({ id: "shop-without-roles", agentKey: "eeeeeeeeeeeeeeeeeeee" });
  if (slot === null) throw new Error("no slot");
  const slotOf = (id: string) => ({ ...slot, prefix: instancePrefix(id), roles: ["white", "black"] });
  const twin = await gateway.put({ ...second, slot: slotOf(second.id) });
  const first = { slot: slotOf(ID), linkSecret: "first-secret" };
  await gateway.change(first);
  const row = { ...common, ...first, id: ID, agentKey: AGENT_KEY };
  return { gateway, keys: { ...roleKeysOf(row) }, other: { ...roleKeysOf(twin) } };
}

const call = (gateway: OpenGateway, path: string, init: RequestInit = {}) => fetch(`${gateway.url}${path}`, { method: "POST", ...init });

describe("the link of a role", () => {
  it.each([{ connection: "close" }, { connection: "keep-alive" }])("opens the tools of its role, with %j", async (headers) => {
    const { gateway, keys } = await start();
    for (const role of ["white", "black"]) {
      const answer = await call(gateway, `/agent/${keys[role]}/mcp`, { headers });
      expect([answer.status, await answer.text()]).toEqual([200, `${instancePrefix(ID)}/role/${role}/mcp`]);
    }
  });

  it("differs between roles and between instances, and does not contain the instance's id", async () => {
    const { keys, other } = await start();
    const all = [...Object.values(keys), ...Object.values(other)];
    expect(new Set(all.map((key) => key.split(".")[2])).size).toBe(4);
    for (const key of all) expect(key).toMatch(/^[a-z2-7]{20}\.(white|black)\.[0-9a-f]{32}$/);
    expect(all.some((key) => key.includes(ID))).toBe(false);
  });

  it("cannot be turned into that of another role, another instance or no role", async () => {
    const { gateway, keys, other } = await start();
    const [, , mac = ""] = (keys.white ?? "").split(".");
    const [, , otherMac = ""] = (other.white ?? "").split(".");
    const altered = [
      `${AGENT_KEY}.black.${mac}`,
      `${AGENT_KEY}.white.${otherMac}`,
      `${AGENT_KEY}.white.${mac.slice(0, -1)}`,
      `${AGENT_KEY}.white.${mac.slice(0, 16)}`,
      `${AGENT_KEY}.white.${mac}0`,
      `${AGENT_KEY}.white.${mac.toUpperCase()}`,
      `${AGENT_KEY}.white.${mac.replace(/.$/, (last) => (last === "0" ? "1" : "0"))}`,
      `${AGENT_KEY}.white.`,
      `${AGENT_KEY}.white`,
      `${AGENT_KEY}.White.${mac}`,
      `${AGENT_KEY}.white.${mac}.black`,
      `${AGENT_KEY}..${mac}`,
      `${AGENT_KEY}.%2e%2e.${mac}`,
      `${AGENT_KEY}.white%2f..%2fblack.${mac}`,
    ];
    for (const key of altered) {
      const answer = await call(gateway, `/agent/${key}/mcp`);
      expect([key, answer.status, await answer.text()]).toEqual([key, expect.toBeOneOf([403, 404]), expect.not.stringContaining("/role/")]);
    }
    // It is refused like a key of no instance.
    const refusal = async (key: string) => {
      const { request_id, requestId, ...body } = (await (await call(gateway, `/agent/${key}/mcp`)).json()) as Record<string, unknown>;
      return body;
    };
    expect(await refusal(`${AGENT_KEY}.black.${mac}`)).toEqual(await refusal(`dddddddddddddddddddd.white.${mac}`));
  });

  it("opens nothing else: neither the role's own path, nor views, state, logs, rewards or the agent API of others", async () => {
    const { gateway, keys } = await start();
    const paths = [
      "/role/black/mcp",
      "/mcp/../role/black/mcp",
      "/mcp/%2e%2e/%2e%2e/role/black/mcp",
      "/role/white/forfeit",
      "/episode/prompt?role=black",
      "/episode/status",
      "/episode/oracle?role=white",
      "/episode/recording",
      "/state/snapshot",
      "/state/digest",
      "/task/reward",
      "/task/reset",
      "/functions/list",
      "/a2a",
      "/.well-known/agent-card.json",
      "/logs",
      "/fork",
    ];
    for (const method of ["POST", "GET"])
      for (const path of paths) {
        const answer = await call(gateway, `/agent/${keys.white}${path}`, { method });
        expect([method, path, answer.status]).toEqual([method, path, 403]);
      }
  });

  it("is the only one of an agent: the link without a role is refused", async () => {
    const { gateway } = await start();
    const answer = await call(gateway, `/agent/${AGENT_KEY}/mcp`);
    expect([answer.status, (await answer.text()).includes("role_urls")]).toEqual([403, true]);
  });

  it("ignores headers that name an instance or a path", async () => {
    const { gateway, keys } = await start();
    const headers = { "aenvcore-envinstance-id": "shop-second", "aenvcore-mcpproxy-url": "http://shop-second:8081/role/black/mcp" };
    const answer = await call(gateway, `/agent/${keys.white}/mcp?role=black`, { headers });
    expect(await answer.text()).toBe(`${instancePrefix(ID)}/role/white/mcp?role=black`);
  });

  it("ends with its instance", async () => {
    const { gateway, keys } = await start();
    await gateway.change({ status: "Terminated", slot: null, reason: "deleted" });
    expect((await call(gateway, `/agent/${keys.white}/mcp`)).status).toBe(410);
    expect((await call(gateway, `/agent/${AGENT_KEY}.black.${(keys.white ?? "").split(".")[2]}/mcp`)).status).toBe(404);
  });

  it("is no token: its path is a route of trainers", async () => {
    const { gateway } = await start({ isAccessOn: true, idsAreKeys: false });
    expect((await call(gateway, `${instancePrefix(ID)}/role/black/mcp`)).status).toBe(401);
  });
});
