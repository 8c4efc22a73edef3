import { availableParallelism } from "node:os";
import type { OpenSandboxOptions } from "@aenv/kit";
import { composeOf, hasServices, isComposeTask } from "../compose/of-task.ts";
import { egressOf, isIpv6 } from "../platform/egress.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";
import { machineProblems } from "../task/machine.ts";
import type { Task } from "../task/model.ts";
import { isSamePolicy, type NetworkPolicy } from "../trial/plan/network.ts";
import { planTask, type StepPlan } from "../trial/plan/plan.ts";
import { verifierTask } from "../verifier/environment.ts";

/** Memory of a task that names none. */
const DEFAULT_MEMORY_MB = 2_048;

/** The limits and the network of a sandbox. A task cannot get more processors than the machine has. */
export function openOptions(
  { memory_mb, cpus, storage_mb = null }: Pick<EnvironmentConfig, "memory_mb" | "cpus"> & Partial<Pick<EnvironmentConfig, "storage_mb">>,
  policy: NetworkPolicy,
) {
  const egress = egressOf(policy);
  return {
    memoryMb: memory_mb ?? DEFAULT_MEMORY_MB,
    ...(storage_mb !== null && storage_mb > 0 && { diskMb: storage_mb }),
    ...(cpus !== null && cpus > 0 && { cpus: Math.min(cpus, availableParallelism()) }),
    ...(egress !== null && { egress }),
  } satisfies OpenSandboxOptions;
}

/** Why the platform cannot run a task; empty if it can. Whether the engine can change the network is found out at the start. */
export function problemsOf(task: Task, isStrict: boolean): readonly string[] {
  const plans = planTask(task);
  const prior = task.priorContext !== null && "problem" in task.priorContext ? [task.priorContext.problem] : [];
  const problems = [
    ...prior,
    ...machineProblems(task),
    ...plans.flatMap((plan) => [...hostProblems(plan), ...verifierProblems(task, plan)]),
  ];
  return [...new Set([...problems, ...composeProblems(task, plans, isStrict)])];
}

/** Why the environment of a step's separate verifier cannot be made. */
function verifierProblems(task: Task, { verifier }: StepPlan): readonly string[] {
  if (verifier.environment === null) return [];
  const own = verifierTask(task, verifier.environment);
  const services = hasServices(own) ? ["it has several services, which only an agent's environment can have"] : [];
  const problems = [...machineProblems(own), ...services, ...(isComposeTask(own) ? composeOf(own, null).problems : [])];
  return problems.map((problem) => `its verifier's environment: ${problem}`);
}

/** Sandboxes have addresses of IPv4 only, so a task that may only reach IPv6 could not be solved. */
function hostProblems({ network }: StepPlan): readonly string[] {
  const isUnreachable = [network.agent, network.verifier].some(({ hosts }) => hosts.length > 0 && hosts.every(isIpv6));
  return isUnreachable ? ["its allowed_hosts are all IPv6, which sandboxes do not have"] : [];
}

function composeProblems(task: Task, plans: readonly StepPlan[], isStrict: boolean): readonly string[] {
  if (!isComposeTask(task)) return [];
  const plan = composeOf(task, null);
  // The agent's own networks are the same for all of its policies.
  const isFixed = hasServices(task) || plan.isInternal(plan.main);
  return [...plan.problems, ...(isFixed ? networkProblems(plans, isStrict) : [])];
}

/** The services of a compose file have the network of the agent's sandbox from their start. */
function networkProblems(plans: readonly StepPlan[], isStrict: boolean): readonly string[] {
  const agents = plans.map(({ network }) => network.agent);
  const allows = agents.some(({ mode }) => mode === "allowlist");
  const changes = networksOf(plans, isStrict).length > 1;
  return [
    ...(allows ? ["its services need the engine docker, which cannot restrict connections to the hosts of an allow list"] : []),
    ...(changes ? ["its agent has another network policy in another step, or its tests have one, and its services cannot get it"] : []),
  ];
}

/** The different policies that the agent's sandbox has, the first one at its start. */
export function networksOf(plans: readonly StepPlan[], isStrict: boolean): readonly NetworkPolicy[] {
  const all = plans.flatMap(({ network, verifier }) => {
    const isVerifiedInside = !isStrict && verifier.environment === null;
    return isVerifiedInside ? [network.agent, network.verifier] : [network.agent];
  });
  return all.filter((policy, i) => all.findIndex((other) => isSamePolicy(policy, other)) === i);
}
