import { noAbilities } from "@aenv/sandbox";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { globMatches } from "./glob.ts";
import { type PolicyInput, secondOf, specFor, taskPolicyFor } from "./policy.ts";

const input = (deployConfig: NonNullable<PolicyInput["config"]["deployConfig"]>, more: Partial<PolicyInput> = {}): PolicyInput => ({
  ref: "shop@1.0.0",
  config: { name: "shop", version: "1.0.0", deployConfig },
  image: null,
  isShared: false,
  egress: { agent: "none" },
  isNarrowed: false,
  egressLimit: "open",
  engine: { name: "oci", can: { ...noAbilities, images: true, folders: true } },
  limits: { perInstance: 8, perOwner: 100, totalMemoryMb: null, memoryMb: 4_096, defaultMemoryMb: 512 },
  runtime: () => undefined,
  ...more,
});
const policyOf = (...given: Parameters<typeof input>) => taskPolicyFor(input(...given)).policy;

describe("what the code of an instance may open", () => {
  it("is nothing unless the environment declares it", () => {
    expect(policyOf({})).toBeUndefined();
  });

  it("is the second container with the image of the datasource, else of the config, else of the platform", () => {
    const dual = { podTemplate: "DualContainer", secondImageName: "team/second" };
    expect(policyOf(dual, { image: "team/one" })).toMatchObject({ hasSecond: true, image: "team/one", hasSharedFolder: true });
    expect(policyOf(dual)).toMatchObject({ image: "team/second" });
    expect(policyOf({ podTemplate: "DualContainer" })).toMatchObject({ image: null });
    expect(() => policyOf({ ...dual, secondImageName: "oci:/etc" })).toThrow("deployConfig.secondImageName");
  });

  it("has no shared folder if the instances share a process, with a warning", () => {
    const { policy, warnings } = taskPolicyFor(input({ podTemplate: "DualContainer" }, { isShared: true }));
    expect(policy?.hasSharedFolder).toBe(false);
    expect(warnings).toEqual([expect.stringContaining("/shared")]);
  });

  it("has no shared folder on an engine that mounts none, with a warning", () => {
    const engine = { name: "kubernetes", can: { ...noAbilities, images: true } };
    const { policy, warnings } = taskPolicyFor(input({ podTemplate: "DualContainer" }, { engine }));
    expect(policy).toMatchObject({ hasSecond: true, hasSharedFolder: false });
    expect(warnings).toEqual([expect.stringMatching(/no folder \/shared.*'kubernetes'/)]);
  });

  it("begins with a second container inside of the sandbox, on an engine that has such, if both have the same network", () => {
    const engine = {
      name: "kubernetes",
      can: { ...noAbilities, images: true, seconds: true },
      egress: { reportsRefused: false, changes: false },
    };
    const dual = { podTemplate: "DualContainer", taskSandboxes: { memory: "1Gi", cpu: "2" } };
    const egress = { agent: "none" } as const;
    const { policy, warnings } = taskPolicyFor(input(dual, { engine, egress, image: "team/one" }));
    expect(policy).toMatchObject({ isSecondInside: true, hasSharedFolder: false });
    expect(secondOf(policy)).toEqual({ image: "team/one", resources: { memoryMb: 1_024, cpus: 2 } });
    expect(warnings).toEqual([expect.stringContaining("after a reset")]);
    const open = { ...dual, taskSandboxes: { egress: "open" as const } };
    const apart = taskPolicyFor(input(open, { engine, egress }));
    expect([secondOf(apart.policy), apart.policy?.isSecondInside]).toEqual([undefined, undefined]);
    expect(apart.warnings).toEqual([expect.stringContaining("deployConfig.taskSandboxes.egress differs")]);
    expect(policyOf(dual, { engine, egress, isShared: true })?.isSecondInside).toBeUndefined();
  });

  it("has the limits of the config, within those of the server", () => {
    expect(policyOf({ taskSandboxes: { memory: "1Gi", cpu: "1500m", disk: "1Gi", atOnce: 100 } })).toMatchObject({
      memoryMb: 1_024,
      cpus: 1.5,
      diskMb: 1_024,
      atOnce: 8,
    });
    expect(policyOf({ taskSandboxes: {} })).toMatchObject({ memoryMb: 512, atOnce: 4 });
    expect(() => policyOf({ taskSandboxes: { memory: "8Gi" } })).toThrow(/taskMemoryMb/);
    expect(policyOf({ taskSandboxes: { memory: "1Gi", shmMb: 512 } })).toMatchObject({ shmMb: 512 });
    expect(() => policyOf({ taskSandboxes: { shmMb: 512 } })).toThrow("taskSandboxes.shmMb");
    expect(policyOf({ taskSandboxes: { capabilities: "docker" } })).toMatchObject({ capabilities: "docker" });
  });

  it("may connect where the environment says, unless the request or the operator narrows it", () => {
    const own = { taskSandboxes: { egress: "open" }, rewardEgress: "open" } as const;
    expect(policyOf(own)).toMatchObject({ egress: "open", rewardEgress: "open" });
    expect(policyOf(own, { isNarrowed: true })).toMatchObject({ egress: "none", rewardEgress: "none" });
    const narrower = { taskSandboxes: { egress: { allow: ["a.example"] } }, rewardEgress: { allow: ["a.example:443"] } } as const;
    const asked = { isNarrowed: true, egress: { agent: { allow: ["a.example", "b.example"] } } };
    expect(policyOf(structuredClone(narrower) as never, asked)).toMatchObject({
      egress: { allow: ["a.example"] },
      rewardEgress: { allow: ["a.example:443"] },
    });
    expect(policyOf({ taskSandboxes: {} }, { egress: { agent: "open" } })).toMatchObject({ egress: "open" });
    expect(() => policyOf(own, { egressLimit: "none" })).toThrow(/egressLimit/);
    expect(policyOf(own, { egress: undefined })).not.toHaveProperty("egress");
  });
});

describe("a sandbox that the code asks for", () => {
  const policy = policyOf(
    { taskSandboxes: { images: ["team/*"], memory: "1Gi", shmMb: 128, egress: "open" }, rewardEgress: "none" },
    { image: "data/one" },
  );
  const spec = (request: object, like: Parameters<typeof specFor>[2] = null) => {
    if (policy === undefined) throw new Error("no policy");
    return specFor(policy, { name: "task", episode: "e", purpose: "open", ...request }, like);
  };

  it("has the image of the datasource unless it names a listed one", () => {
    expect(spec({})).toEqual({ image: "data/one", memoryMb: 1_024, shmMb: 128, egress: "open" });
    expect(spec({ image: "team/two:1", memory_mb: 64, cpus: 2, egress: "none" })).toEqual({
      image: "team/two:1",
      memoryMb: 64,
      cpus: 2,
      shmMb: 128,
      egress: "none",
    });
    expect(() => spec({ image: "data/two" })).toThrow(/deployConfig\.taskSandboxes\.images/);
    expect(() => spec({ memory_mb: 2_000 })).toThrow(/deployConfig\.taskSandboxes\.memory/);
  });

  it("is made as another one if it is fresh, with the policy of rewards", () => {
    const like = { image: "team/two:1", memoryMb: 64, egress: "open" } as const;
    expect(spec({ purpose: "fresh", of: "task-1" }, like)).toEqual({ ...like, egress: "none", isFresh: true });
  });
});

it("a pattern matches as the same regular expression does", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "/", "*"), maxLength: 8 });
  fc.assert(
    fc.property(text, text, (pattern, given) => {
      const expression = new RegExp(`^${pattern.replaceAll("*", ".*")}$`);
      expect(globMatches(pattern, given)).toBe(expression.test(given));
    }),
  );
});
