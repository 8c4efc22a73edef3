import type { EgressPolicy } from "@aenv/contract";
import { noAbilities } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import { egressFor, egressHints } from "./egress.ts";
import { ada, openTestServer, openWorld } from "./fixtures/test-server.ts";

const SHOP: EgressPolicy = { allow: ["api.example.com:443", "*.shop.example"] };

describe("the policy for outgoing connections", () => {
  const choose = (
    deployConfig: Record<string, unknown>,
    egress?: EgressPolicy,
    options: { limit?: EgressPolicy; can?: boolean; changes?: boolean; isShared?: boolean } = {},
  ) =>
    egressFor(
      { name: "shop", version: "1.0.0", config: { name: "shop", version: "1.0.0", deployConfig } },
      egress === undefined ? {} : { egress },
      {
        limit: options.limit ?? "open",
        engine: {
          name: "memory",
          can: noAbilities,
          ...((options.can ?? true) && { egress: { reportsRefused: false, changes: options.changes ?? true } }),
        },
        isShared: options.isShared ?? false,
        runtime: () => undefined,
      },
    );

  it("is that of the environment, or none", () => {
    expect(choose({})).toEqual({ egress: { agent: "none" }, warnings: [] });
    expect(choose({ egress: SHOP, rewardEgress: "open" })).toEqual({ egress: { agent: SHOP, reward: "open" }, warnings: [] });
  });

  it("is narrowed by a request, and never widened", () => {
    expect(choose({ egress: SHOP }, { allow: ["api.example.com:443"] }).egress?.agent).toEqual({ allow: ["api.example.com:443"] });
    expect(choose({ egress: "open" }, "none").egress?.agent).toBe("none");
    const widened = "egress allows 'api.example.com', which deployConfig.egress of shop@1.0.0 does not; a request may only narrow";
    expect(() => choose({ egress: SHOP }, { allow: ["api.example.com"] })).toThrow(widened);
    expect(() => choose({}, "open")).toThrow("egress allows 'open'");
  });

  it("is narrowed for rewards too, to what both the request and the environment allow", () => {
    const rewardOf = (rewardEgress: EgressPolicy, egress?: EgressPolicy) => choose({ egress: "open", rewardEgress }, egress).egress?.reward;
    expect(rewardOf("open", "none")).toBe("none");
    expect(rewardOf("open", SHOP)).toEqual(SHOP);
    expect(rewardOf({ allow: ["api.example.com:443", "judge.example"] }, SHOP)).toEqual({ allow: ["api.example.com:443"] });
    expect(rewardOf("none", SHOP)).toBe("none");
    expect(rewardOf("open")).toBe("open");
  });

  it("is refused if the engine says that a sandbox cannot have it, or cannot have that of rewards after it", () => {
    const choosing = (deployConfig: Record<string, unknown>) =>
      egressFor(
        { name: "shop", version: "1.0.0", config: { name: "shop", version: "1.0.0", deployConfig } },
        {},
        {
          limit: "open",
          engine: {
            name: "docker",
            can: noAbilities,
            egress: {
              reportsRefused: false,
              changes: true,
              problem: (policies, runtime) =>
                policies.some((one) => typeof one === "object")
                  ? "no lists"
                  : runtime === "runsc" && new Set(policies).size > 1
                    ? "no changes"
                    : null,
            },
          },
          isShared: false,
          runtime: () => "runsc",
        },
      );
    expect(choosing({ egress: "open" }).egress).toEqual({ agent: "open" });
    expect(() => choosing({ egress: SHOP })).toThrow("deployConfig.egress of shop@1.0.0 cannot be applied: no lists");
    expect(() => choosing({ rewardEgress: SHOP })).toThrow("deployConfig.rewardEgress of shop@1.0.0 cannot be applied: no lists");
    expect(() => choosing({ rewardEgress: "open" })).toThrow("deployConfig.rewardEgress of shop@1.0.0 cannot be applied: no changes");
  });

  it("is refused beyond the limit of the operator, with the setting that allows it", () => {
    const limit: EgressPolicy = { allow: ["*.example.com:443"] };
    expect(choose({ egress: { allow: ["api.example.com:443"] } }, undefined, { limit }).egress).toBeDefined();
    expect(() => choose({ egress: SHOP }, undefined, { limit })).toThrow("wants connections to '*.shop.example' (deployConfig.egress)");
    expect(() => choose({ rewardEgress: "open" }, undefined, { limit })).toThrow(
      "'open' (deployConfig.rewardEgress), which this server does not",
    );
    expect(choose({ egress: SHOP }, "none", { limit }).egress?.agent).toBe("none");
  });

  it("is not restricted on an engine that cannot do it, with a warning if anything was set", () => {
    const warning = "egress ignored, outgoing connections are not restricted: the engine 'memory' cannot do it";
    expect(choose({}, undefined, { can: false })).toEqual({ egress: undefined, warnings: [] });
    expect(choose({ egress: "none" }, undefined, { can: false })).toEqual({ egress: undefined, warnings: [warning] });
  });

  it("is the same for rewards, with a warning, if the engine cannot change that of a sandbox that runs", () => {
    const warning =
      "rewardEgress ignored, rewards have the agent's policy: the engine 'memory' cannot change the policy of a sandbox that runs";
    expect(choose({ rewardEgress: "open" }, undefined, { changes: false })).toEqual({ egress: { agent: "none" }, warnings: [warning] });
  });

  it("is that of the environment for instances that share a process", () => {
    const isShared = true;
    expect(choose({ egress: SHOP }, SHOP, { isShared }).egress).toEqual({ agent: SHOP });
    expect(() => choose({ egress: SHOP }, "none", { isShared })).toThrow('set deployConfig.isolation to "instance"');
    expect(choose({ rewardEgress: "open" }, undefined, { isShared }).warnings).toEqual([expect.stringContaining("rewardEgress ignored")]);
  });
});

describe("a sandbox", () => {
  async function open(deployConfig: object, pool = 0, changesEgress = true, blank = 0) {
    const world = openWorld({ egress: true, changesEgress });
    const server = openTestServer(world, { pool, blank });
    const ref = await world.publish(ada, "shop", deployConfig);
    const policies = async (sandboxId = "") => {
      const sandbox = (await world.engine.list()).find(({ id }) => id === sandboxId);
      const first = started(sandboxId);
      return [...(first === undefined ? [] : [first]), ...(sandbox as unknown as { policies: EgressPolicy[] }).policies];
    };
    const started = (sandboxId = "") => world.started.find(({ id }) => id === sandboxId)?.egress;
    return { world, server, ref, policies, started };
  }

  it("gets the policy of its instance before it loads the environment, and so do forks", async () => {
    const { server, ref, started } = await open({ isolation: "instance", egress: SHOP });
    const row = await server.create(ref, { egress: { allow: ["a.shop.example"] } });
    expect(started(row.slot?.sandboxId)).toEqual({ allow: ["a.shop.example"] });
    const [fork] = await server.instances.fork(row.id, 1, { caller: ada, signal: server.signal });
    expect(started(fork?.slot?.sandboxId)).toEqual({ allow: ["a.shop.example"] });
  });

  it("that was started ahead as a blank one gets the policy of its instance before it loads the environment", async () => {
    const { server, ref, policies, started } = await open({ isolation: "instance", egress: SHOP }, 1, true, 1);
    await server.pool.warmUp();
    const row = await server.create(ref);
    expect([started(row.slot?.sandboxId), await policies(row.slot?.sandboxId)]).toEqual([undefined, [SHOP]]);
  });

  it("is a new one, and no blank one, if the engine says that one of this runtime or daemon cannot get the policy while it runs", async () => {
    const { world, server, ref, started } = await open({ isolation: "instance", egress: "open" }, 1, true, 1);
    const problem = (policies: readonly EgressPolicy[]) => (policies.length > 1 && policies[0] === "none" ? "no network" : null);
    Object.assign(world.engine, { egress: { ...world.engine.egress, problem } });
    await server.pool.warmUp();
    expect(started((await server.create(ref)).slot?.sandboxId)).toBe("open");
    await expect(server.create(await world.publish(ada, "other", { isolation: "instance", rewardEgress: "open" }))).rejects.toMatchObject({
      code: "instance.unsupported",
      message: "deployConfig.rewardEgress of other@1.0.0 cannot be applied: no network",
    });
  });

  it("is a new one with the policy, if the engine cannot change that of a sandbox that runs", async () => {
    const { server, ref, policies, started } = await open({ isolation: "instance", egress: "open", warm: 1 }, 2, false);
    const row = await server.create(ref);
    expect(started(row.slot?.sandboxId)).toBe("open");
    expect(await policies(row.slot?.sandboxId)).toEqual(["open"]);
  });

  it("stays without connections if nothing allows any", async () => {
    const { server, ref, policies } = await open({ isolation: "instance" });
    expect(await policies((await server.create(ref)).slot?.sandboxId)).toEqual([]);
  });

  it("that was started ahead has the policy of the environment, and is not used for a narrower one", async () => {
    const { server, ref, policies } = await open({ isolation: "instance", egress: SHOP, warm: 1 }, 2);
    for (const egress of [undefined, "none" as const, undefined]) {
      const row = await server.create(ref, egress === undefined ? {} : { egress });
      expect(await policies(row.slot?.sandboxId)).toEqual(egress === undefined ? [SHOP] : []);
    }
  });

  it("tells the owner at the start that there are no connections, if the engine does not report those that it refuses", async () => {
    const { world, server, ref } = await open({ isolation: "instance" });
    const hint = "egress: no outgoing connections; the environment allows them with deployConfig.egress";
    const said = async (of: string) => (await server.create(of)).events.map(({ what }) => what).filter((what) => what.startsWith("egress"));
    expect(await said(ref)).toEqual([hint]);
    expect(await said(await world.publish(ada, "open", { isolation: "instance", egress: "open" }))).toEqual([]);
    expect(egressHints({ egress: { reportsRefused: true, changes: true } }, "none", "none")).toEqual([]);
    expect(egressHints(world.engine, "open", "none")).toEqual([expect.stringContaining("deployConfig.taskSandboxes.egress")]);
  });

  it("tells the owner about refused connections, a few times", async () => {
    const { server, ref } = await open({ isolation: "instance" });
    const row = await server.create(ref);
    const sandboxId = row.slot?.sandboxId ?? "";
    await server.instances.sandboxEvents.refused({ sandboxId, host: "pypi.org", port: null });
    for (let port = 1; port < 10; port++) await server.instances.sandboxEvents.refused({ sandboxId, host: "1.2.3.4", port });
    const { events } = await server.instances.get(row.id, ada);
    const refused = events.map(({ what }) => what).filter((what) => what.startsWith("egress: refused"));
    expect(refused).toHaveLength(5);
    expect(refused[0]).toBe("egress: refused a connection to the name pypi.org; the environment allows it with deployConfig.egress");
    expect(refused[1]).toContain("to 1.2.3.4:1;");
  });

  it("gets the agent's policy again when another server adopts it", async () => {
    const { world, server, ref, policies } = await open({ isolation: "instance", egress: SHOP, rewardEgress: "open" });
    const row = await server.create(ref);
    const sandbox = (await world.engine.list()).find(({ id }) => id === row.slot?.sandboxId);
    await sandbox?.egress?.set("open");
    if (sandbox !== undefined) openTestServer(world).slots.adopt(row, sandbox);
    expect((await policies(row.slot?.sandboxId)).at(-1)).toEqual(SHOP);
  });
});
