import { availableParallelism } from "node:os";
import type { OpenSandboxOptions } from "@aenv/kit";
import { composeOf, isComposeTask } from "../compose/of-task.ts";
import { isSamePolicy, type NetworkPolicy } from "../network/policy.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";
import type { Task } from "../task/model.ts";
import { planTask } from "../trial/plan.ts";

/** Memory of a task that names none. */
const DEFAULT_MEMORY_MB = 2_048;

/** The limits and the network of a sandbox. A task cannot get more processors than the machine has. */
export function openOptions(
  { memory_mb, cpus, storage_mb = null }: Pick<EnvironmentConfig, "memory_mb" | "cpus"> & Partial<Pick<EnvironmentConfig, "storage_mb">>,
  policy: NetworkPolicy,
): Pick<OpenSandboxOptions, "memoryMb" | "cpus" | "diskMb" | "egress"> {
  return {
    memoryMb: memory_mb ?? DEFAULT_MEMORY_MB,
    ...(storage_mb !== null && storage_mb > 0 && { diskMb: storage_mb }),
    ...(cpus !== null && { cpus: Math.min(cpus, availableParallelism()) }),
    ...egressOf(policy),
  };
}

/** The public network is what the environment may use at most, so it needs no policy of its own. */
function egressOf({ mode, hosts }: NetworkPolicy): Pick<OpenSandboxOptions, "egress"> {
  if (mode === "public") return {};
  return { egress: mode === "no-network" || hosts.length === 0 ? "none" : { allow: [...hosts] } };
}

/** Why the platform cannot run a task; empty if it can. */
export function problemsOf(task: Task, isStrict: boolean): readonly string[] {
  const { config } = task;
  const plans = planTask(task);
  const first = plans[0]?.network.agent;
  const agents = plans.map(({ network }) => network.agent);
  const changes = !agents.every((policy) => first !== undefined && isSamePolicy(policy, first));
  const isSwitched = plans.some(({ network, verifier }) => verifier.environment === null && !isSamePolicy(network.verifier, network.agent));
  return [
    ...(isComposeTask(task) ? composeProblems(composeOf(task, null).problems, agents) : []),
    ...((config.environment.gpus ?? 0) > 0 ? ["it needs a GPU, which sandboxes do not have"] : []),
    ...(changes ? ["the network policy of the agent differs between its steps, and that of a running sandbox cannot be changed"] : []),
    ...(!isStrict && isSwitched ? ["the verifier has another network policy than the agent, which needs TERMINAL_BENCH_STRICT=true"] : []),
  ];
}

function composeProblems(problems: readonly string[], policies: readonly NetworkPolicy[]): readonly string[] {
  const allows = policies.some(({ mode }) => mode === "allowlist");
  return [
    ...problems,
    ...(allows ? ["its services need the engine docker, which cannot restrict connections to the hosts of an allow list"] : []),
  ];
}
