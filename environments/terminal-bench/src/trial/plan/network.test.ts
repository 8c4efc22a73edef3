import { describe, expect, it } from "vitest";
import { parseTaskToml } from "../../task/config/toml.ts";
import { networkPlan, unsupportedPolicies } from "./network.ts";

const plan = (source: string, run = {}) => {
  const config = parseTaskToml(source);
  return networkPlan(config, config.steps?.[0] ?? null, run);
};
const allowlist = (...hosts: string[]) => ({ mode: "allowlist", hosts });
const NONE = { mode: "no-network", hosts: [] };
const PUBLIC = { mode: "public", hosts: [] };

describe("network policies", () => {
  it("of phases replace the baseline", () => {
    const source = '[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = ["b.org", "a.org"]\n[agent]\nnetwork_mode = "no-network"';
    expect(plan(source)).toMatchObject({ baseline: allowlist("a.org", "b.org"), agent: NONE, verifier: allowlist("a.org", "b.org") });
  });

  it("of a step come before those of the task", () => {
    const source =
      '[agent]\nnetwork_mode = "no-network"\n[[steps]]\nname = "s"\n[steps.agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.org"]';
    expect(plan(source)).toMatchObject({ agent: allowlist("a.org"), baseline: PUBLIC });
  });

  it("open for the hosts of a run; a public one stays public", () => {
    expect(plan('[environment]\nnetwork_mode = "no-network"', { environment: ["A.org"] }).baseline).toEqual(allowlist("a.org"));
    expect(plan("", { agent: ["a.org"] })).toMatchObject({ agent: PUBLIC, warnings: [expect.stringContaining("public")] });
  });

  it("of a separate verifier are its own; those of a copy include the run's hosts", () => {
    const own = '[environment]\nnetwork_mode = "no-network"\n[verifier.environment]\ncpus = 1';
    expect(plan(own, { environment: ["a.org"] }).verifierBaseline).toEqual(PUBLIC);
    const copy = '[environment]\nnetwork_mode = "no-network"\n[verifier]\nenvironment_mode = "separate"';
    expect(plan(copy, { environment: ["a.org"] }).verifier).toEqual(allowlist("a.org"));
  });

  it("that an engine cannot enforce are refused before the start", () => {
    const phases = plan('[agent]\nnetwork_mode = "no-network"');
    expect(unsupportedPolicies(phases, { modes: ["public", "no-network"], canSwitch: false })).toEqual([
      "the engine cannot change the network for the agent",
    ]);
    expect(unsupportedPolicies(phases, { modes: ["public"], canSwitch: true })).toEqual([
      'the engine cannot enforce network_mode = "no-network" of the agent',
    ]);
  });
});
