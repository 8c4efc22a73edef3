import { setImmediate } from "node:timers/promises";
import type { EgressPolicy } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import { describe, expect, it } from "vitest";
import { RewardPhases } from "./reward-phases.ts";
import type { InstanceRow } from "./row.ts";

describe("the phase of a reward", () => {
  function open(fail: (policy: EgressPolicy) => boolean = () => false) {
    const policies: EgressPolicy[] = [];
    const failures: unknown[] = [];
    const set = async (policy: EgressPolicy) => {
      await setImmediate();
      if (fail(policy)) throw new Error("no rules");
      policies.push(policy);
    };
    const phases = new RewardPhases({
      find: async () => ({ egress: { set } }) as Partial<Sandbox> as Sandbox,
      onFailure: (error) => failures.push(error),
    });
    return { policies, failures, phases };
  }
  const row = (reward?: EgressPolicy) =>
    ({ slot: { sandboxId: "one" }, egress: { agent: "none", ...(reward && { reward }) } }) as Partial<InstanceRow> as InstanceRow;
  const settled = async () => {
    for (let step = 0; step < 10; step++) await setImmediate();
  };

  it("has its policy before the reward is computed, and ends after the last of several", async () => {
    const { policies, phases } = open();
    const [one, two] = await Promise.all([phases.enter(row("open")), phases.enter(row("open"))]);
    expect(policies).toEqual(["open"]);
    one?.();
    one?.();
    await settled();
    expect(policies).toEqual(["open"]);
    two?.();
    await settled();
    expect(policies).toEqual(["open", "none"]);
    const again = phases.enter(row("open"));
    (await again)?.();
    await settled();
    expect(policies).toEqual(["open", "none", "open", "none"]);
  });

  it("begins again right after it ended, in this order", async () => {
    const { policies, phases } = open();
    (await phases.enter(row("open")))?.();
    const leave = await phases.enter(row("open"));
    expect(policies).toEqual(["open", "none", "open"]);
    leave?.();
    await settled();
    expect(policies.at(-1)).toBe("none");
  });

  it("is left by the next call, which waits for the policy of the agent, but not for rewards that are still computed", async () => {
    const { policies, phases } = open();
    const [one, two] = await Promise.all([phases.enter(row("open")), phases.enter(row("open"))]);
    one?.();
    expect(phases.left(row("open"))).toBeNull();
    two?.();
    await phases.left(row("open"));
    expect(policies).toEqual(["open", "none"]);
    await settled();
    expect([phases.left(row("open")), phases.left(row())]).toEqual([null, null]);
  });

  it("does not exist without a policy of its own", () => {
    const { phases } = open();
    expect(phases.enter(row())).toBeNull();
    expect(phases.enter({ ...row("open"), slot: null })).toBeNull();
  });

  it("fails the reward if the policy cannot be set, and returns to the agent's; a failure of that is reported", async () => {
    const first = open((policy) => policy === "open");
    await expect(first.phases.enter(row("open"))).rejects.toThrow("no rules");
    await settled();
    expect(first.policies).toEqual(["none"]);
    const second = open((policy) => policy === "none");
    (await second.phases.enter(row("open")))?.();
    await settled();
    expect(second.failures).toHaveLength(1);
  });
});
