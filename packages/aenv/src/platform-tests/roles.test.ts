import type { InstanceRecord } from "@aenv/contract";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { callTool, urlOf } from "./calls.ts";
import { type Platform, projects, publish, startPlatform } from "./platform.ts";

/** The link of a role of an instance. */
const linkOf = ({ role_urls: urls }: InstanceRecord, role: string): string => urls?.[role] ?? "";
const move = (instance: InstanceRecord, role: string, what: string) => callTool(linkOf(instance, role), "move", { move: what });

describe.each([
  { workers: 1, isolation: "shared" },
  { workers: 2, isolation: "instance" },
] as const)("roles on a server with $workers workers, with isolation $isolation", { timeout: 60_000 }, ({ workers, isolation }) => {
  let platform: Platform;
  let ada: { readonly authorization: string };
  let agent: { readonly authorization: string };
  let ref: string;
  const create = (task: string, more: object = {}) => platform.create(ref, { task, seed: 1, ...more }, ada);

  beforeAll(async () => {
    platform = await startPlatform({ flags: { access: "on", workers } });
    ada = await platform.token("ada", "publisher", "trainer");
    agent = await platform.token("ada", "agent");
    ref = await publish(platform, projects.games, { headers: ada, isolation });
  });
  afterAll(() => platform?.close());

  const reward = async (id: string) => {
    const response = await fetch(urlOf(platform, id, "/task/reward"), { method: "POST", headers: ada, body: "{}" });
    return ((await response.json()) as { data: unknown }).data;
  };

  it("have a link each, over which two agents play a hand that is scored for each", async () => {
    const instance = await create("kuhn");
    expect([instance.agent_url, Object.keys(instance.role_urls ?? {})]).toEqual([null, ["white", "black"]]);
    expect(await platform.demand("GET", `/env-instance/${instance.id}`, undefined, ada)).toMatchObject({ role_urls: instance.role_urls });
    expect(await move(instance, "black", "check")).toMatchObject({ isError: true, text: "it is white's turn" });
    const waiting = callTool(linkOf(instance, "black"), "wait_for_turn", { timeout_s: 60 });
    expect(await move(instance, "white", "bet")).toMatchObject({ isError: false });
    expect((await waiting).text).toContain('"your_turn":true');
    await move(instance, "black", "fold");
    expect(await reward(instance.id)).toMatchObject({
      reward: 0,
      roles: { white: { outcome: { reward: 1 } }, black: { outcome: { reward: -1 } } },
    });
  });

  it("keep a choice that waits in forks and stored snapshots, which have keys of their own", async () => {
    const parent = await create("rock-paper-scissors");
    await move(parent, "white", "rock");
    const forks = (await platform.demand("POST", `/env-instance/${parent.id}/fork`, { count: 2 }, ada)) as InstanceRecord[];
    await platform.demand("POST", `/env-instance/${parent.id}/snapshot`, { name: `waits-${isolation}` }, ada);
    const resumed = await create("rock-paper-scissors", { task: undefined, seed: undefined, snapshot: `waits-${isolation}` });
    const all = [parent, ...forks, resumed];
    expect(new Set(all.flatMap(({ role_urls }) => Object.values(role_urls ?? {}))).size).toBe(8);
    for (const [at, instance] of all.entries()) {
      expect(await move(instance, "white", "paper")).toMatchObject({ isError: true, text: "you have acted; wait for black" });
      const hand = ["rock", "paper", "scissors", "rock"][at] ?? "";
      expect((await move(instance, "black", hand)).text).toContain(`white chose rock, black chose ${hand}`);
    }
  });

  it("reach nothing of each other: one link acts for one role of one instance, and for no trainer", async () => {
    const [one, other] = [await create("kuhn"), await create("kuhn")];
    const white = linkOf(one, "white");
    const [, key = ""] = /\/agent\/([^/]+)\/mcp$/.exec(white) ?? [];
    const [agentKey = "", , mac = ""] = key.split(".");
    const [, otherKey = ""] = /\/agent\/([^/]+)\/mcp$/.exec(linkOf(other, "white")) ?? [];
    const base = platform.dataUrl;
    const forged = [
      `${base}/agent/${agentKey}.black.${mac}/mcp`,
      `${base}/agent/${otherKey.split(".")[0]}.white.${mac}/mcp`,
      `${base}/agent/${agentKey}.white.${mac.slice(0, -2)}/mcp`,
      `${base}/agent/${agentKey}/mcp`,
      `${base}/agent/${key}/role/black/mcp`,
      `${base}/agent/${key}/episode/prompt?role=black`,
      `${base}/agent/${key}/episode/status`,
      `${base}/agent/${key}/state/snapshot`,
      `${base}/agent/${key}/a2a`,
      `${base}/env-instance/${agentKey}/role/black/mcp`,
    ];
    for (const url of forged) {
      const called = await callTool(url, "look");
      expect([url, called.status >= 400, called.text]).toEqual([url, true, null]);
    }
    // The token of an agent opens what is at /mcp, where roles have nothing.
    for (const [path, status] of [
      ["/role/black/mcp", 403],
      ["/mcp", 400],
    ] as const)
      expect((await callTool(urlOf(platform, one.id, path), "look", {}, { headers: agent })).status).toBe(status);
    // A trainer may act for each role, but for none without saying which.
    expect((await callTool(urlOf(platform, one.id, "/role/black/mcp"), "look", {}, { headers: ada })).status).toBe(200);
    expect((await callTool(urlOf(platform, one.id), "look", {}, { headers: ada })).status).toBe(400);
    expect((await callTool(urlOf(platform, one.id, "/role/red/mcp"), "look", {}, { headers: ada })).status).toBe(404);
    expect((await callTool(white, "look")).text).toContain("Your card is the");
  });

  it("are those of a service's replicas too, for trainers", async () => {
    const { id } = (await platform.demand(
      "POST",
      "/env-service",
      { envName: ref, service_name: `table-${isolation}`, replicas: 1 },
      ada,
    )) as {
      id: string;
    };
    await expect
      .poll(async () => platform.demand("GET", `/env-service/${id}`, undefined, ada), { timeout: 30_000 })
      .toMatchObject({ status: "Running" });
    const at = (role: string) => `${platform.dataUrl}/env-service/${id}/role/${role}/mcp`;
    expect((await callTool(at("white"), "look", {}, { headers: ada })).text).toContain("Your card is the");
    expect((await callTool(at("white"), "look", {}, { headers: agent })).status).toBe(403);
    await platform.demand("DELETE", `/env-service/${id}`, undefined, ada);
  });

  it("end with their instance", async () => {
    const instance = await create("kuhn");
    await platform.demand("DELETE", `/env-instance/${instance.id}`, undefined, ada);
    expect((await callTool(linkOf(instance, "white"), "look")).status).toBeGreaterThanOrEqual(400);
  });
});
