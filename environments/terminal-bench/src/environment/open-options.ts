import { availableParallelism } from "node:os";
import type { OpenSandboxOptions } from "@aenv/kit";
import { composeOf, hasServices, isComposeTask } from "../compose/of-task.ts";
import { isSamePolicy, type NetworkPolicy } from "../network/policy.ts";
import { egressOf } from "../platform/egress.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";
import type { Task } from "../task/model.ts";
import { planTask, type StepPlan } from "../trial/plan.ts";

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
    ...(cpus !== null && { cpus: Math.min(cpus, availableParallelism()) }),
    ...(egress !== null && { egress }),
  } satisfies OpenSandboxOptions;
}

/** Why the platform cannot run a task; empty if it can. Whether the engine can change the network is found out at the start. */
export function problemsOf(task: Task, isStrict: boolean): readonly string[] {
  const plans = planTask(task);
  const problems = (task.config.environment.gpus ?? 0) > 0 ? ["it needs a GPU, which sandboxes do not have"] : [];
  if (!isComposeTask(task)) return problems;
  const plan = composeOf(task, null);
  // The agent's own networks are the same for all of its policies.
  const isFixed = hasServices(task) || plan.isInternal(plan.main);
  return [...problems, ...plan.problems, ...(isFixed ? networkProblems(plans, isStrict) : [])];
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
