import type { StepConfig, TaskConfig } from "../../task/config/config.ts";
import { type NetworkMode, parseHost } from "../../task/config/network.ts";
import { verifierEnvironment, verifierMode } from "../../verifier/mode.ts";

/** What a container may reach. */
export interface NetworkPolicy {
  readonly mode: NetworkMode;
  /** Sorted; empty unless the mode is `allowlist`. */
  readonly hosts: readonly string[];
}

/** Hosts that the operator of a run adds. */
export interface RunHosts {
  readonly environment?: readonly string[];
  readonly agent?: readonly string[];
}

export interface NetworkPlan {
  /** From the start of the environment; also for healthchecks and the agent's installation. */
  readonly baseline: NetworkPolicy;
  /** Policy while the agent runs. */
  readonly agent: NetworkPolicy;
  readonly verifierBaseline: NetworkPolicy;
  readonly verifier: NetworkPolicy;
  readonly warnings: readonly string[];
}

interface NetworkFields {
  readonly network_mode: NetworkMode | null;
  readonly allowed_hosts: readonly string[] | null;
}

/** The policies of a task, or of one of its steps. Phase policies replace the baseline; they are not added to it. */
export function networkPlan(task: TaskConfig, step: StepConfig | null, run: RunHosts = {}): NetworkPlan {
  const warnings: string[] = [];
  const merge = (policy: NetworkPolicy, hosts: readonly string[] = []): NetworkPolicy => withHosts(policy, hosts, warnings);
  const baseline = merge(policyOf(task.environment), run.environment);
  const agent = merge(phasePolicy(step?.agent, task.agent) ?? baseline, run.agent);
  const own = verifierEnvironment(task, step);
  const separate = own.isCopy ? baseline : policyOf(own.config);
  const verifierBaseline = verifierMode(task, step) === "shared" ? baseline : separate;
  const verifier = phasePolicy(step?.verifier, task.verifier) ?? verifierBaseline;
  return { baseline, agent, verifierBaseline, verifier, warnings: [...new Set(warnings)] };
}

/** What an engine can enforce. */
export interface NetworkAbilities {
  readonly modes: readonly NetworkMode[];
  /** Whether the policy of a running container can be changed. */
  readonly canSwitch: boolean;
}

/** Why an engine cannot run a plan; empty if it can. A policy is never weakened. */
export function unsupportedPolicies(plan: NetworkPlan, { modes, canSwitch }: NetworkAbilities): string[] {
  const policies = {
    environment: plan.baseline,
    agent: plan.agent,
    "verifier environment": plan.verifierBaseline,
    verifier: plan.verifier,
  };
  const problems = Object.entries(policies).flatMap(([name, { mode }]) =>
    modes.includes(mode) ? [] : [`the engine cannot enforce network_mode = "${mode}" of the ${name}`],
  );
  if (canSwitch) return problems;
  if (!isSamePolicy(plan.agent, plan.baseline)) problems.push("the engine cannot change the network for the agent");
  if (!isSamePolicy(plan.verifier, plan.verifierBaseline)) problems.push("the engine cannot change the network for the verifier");
  return problems;
}

export function isSamePolicy(a: NetworkPolicy, b: NetworkPolicy): boolean {
  return a.mode === b.mode && a.hosts.length === b.hosts.length && a.hosts.every((host, i) => host === b.hosts[i]);
}

function policyOf({ network_mode, allowed_hosts }: NetworkFields): NetworkPolicy {
  const mode = network_mode ?? "public";
  return { mode, hosts: mode === "allowlist" ? sorted(allowed_hosts ?? []) : [] };
}

function phasePolicy(step: NetworkFields | undefined, task: NetworkFields): NetworkPolicy | null {
  const fields = step?.network_mode != null ? step : task;
  return fields.network_mode === null ? null : policyOf(fields);
}

function withHosts(policy: NetworkPolicy, given: readonly string[], warnings: string[]): NetworkPolicy {
  if (given.length === 0) return policy;
  if (policy.mode === "public") {
    warnings.push("additional hosts have no effect: the network is public");
    return policy;
  }
  return { mode: "allowlist", hosts: sorted([...policy.hosts, ...given.map((host) => parseHost(host))]) };
}

function sorted(hosts: readonly string[]): string[] {
  return [...new Set(hosts)].sort();
}
