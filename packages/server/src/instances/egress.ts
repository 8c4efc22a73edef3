import { beyondEgress, type CreateInstanceRequest, type EgressPolicy, narrowEgress, PlatformError } from "@aenv/contract";
import type { SandboxEngine, SandboxRuntime } from "@aenv/sandbox";
import type { EnvironmentVersion } from "../hub/hub.ts";
import { assertPossibleEgress } from "../sandboxes/possible-egress.ts";

/** The policies of an instance for outgoing connections. */
export interface InstanceEgress {
  readonly agent: EgressPolicy;
  /** While a reward is computed; without one, that of the agent. */
  readonly reward?: EgressPolicy;
}

/**
 * What the owner of a new instance is told about its connections. Some engines report each refused connection when it happens. With
 * the others, nothing else would say why a connection failed.
 */
export function egressHints(
  engine: Pick<SandboxEngine, "egress">,
  agent: EgressPolicy | undefined,
  ofTasks: EgressPolicy | undefined,
): readonly string[] {
  if (engine.egress === undefined || engine.egress.reportsRefused) return [];
  return [
    ...(agent === "none" ? ["egress: no outgoing connections; the environment allows them with deployConfig.egress"] : []),
    ...(ofTasks === "none" && agent !== "none"
      ? ["egress: sandboxes of its code have no outgoing connections; the environment allows them with deployConfig.taskSandboxes.egress"]
      : []),
  ];
}

export interface EgressOptions {
  /** What the operator allows at most. */
  readonly limit: EgressPolicy;
  readonly engine: Pick<SandboxEngine, "name" | "can" | "egress">;
  readonly isShared: boolean;
  /** That of the instance's sandbox; undefined for the engine's own. */
  readonly runtime: () => SandboxRuntime | undefined;
}

export interface ChosenEgress {
  /** Undefined for an engine that does not restrict connections. */
  readonly egress: InstanceEgress | undefined;
  /** Settings that have no effect, with the reason. */
  readonly warnings: readonly string[];
}

/**
 * The environment's policy, which the request may narrow, also for rewards, and the operator limits. Without any, there are no outgoing
 * connections. Policies that sandboxes of the engine cannot have are an error.
 */
export function egressFor(
  environment: Pick<EnvironmentVersion, "name" | "version" | "config">,
  request: Pick<CreateInstanceRequest, "egress">,
  options: EgressOptions,
): ChosenEgress {
  const chosen = chooseEgress(environment, request, options);
  if (chosen.egress !== undefined) {
    const { agent, reward = agent } = chosen.egress;
    assertPossibleEgress(`${environment.name}@${environment.version}`, "egress", [agent], options);
    assertPossibleEgress(`${environment.name}@${environment.version}`, "rewardEgress", [agent, reward, agent], options);
  }
  return chosen;
}

function chooseEgress(
  environment: Pick<EnvironmentVersion, "name" | "version" | "config">,
  request: Pick<CreateInstanceRequest, "egress">,
  { limit, engine, isShared }: EgressOptions,
): ChosenEgress {
  const { egress: own, rewardEgress } = environment.config.deployConfig ?? {};
  const reward = rewardEgress && request.egress ? narrowEgress(rewardEgress, request.egress) : rewardEgress;
  const ref = `${environment.name}@${environment.version}`;
  if (request.egress !== undefined) {
    const beyond = beyondEgress(request.egress, own ?? "none");
    if (beyond !== null)
      throw new PlatformError(
        "request.invalid",
        `egress allows '${beyond}', which deployConfig.egress of ${ref} does not; a request may only narrow the environment's policy`,
      );
  }
  const agent = request.egress ?? own ?? "none";
  if (engine.egress === undefined) {
    const isSet = request.egress !== undefined || own !== undefined || reward !== undefined;
    const warning = `egress ignored, outgoing connections are not restricted: the engine '${engine.name}' cannot do it`;
    return { egress: undefined, warnings: isSet ? [warning] : [] };
  }
  for (const [field, policy] of [
    ["egress", agent],
    ["rewardEgress", reward ?? "none"],
  ] as const) {
    const beyond = beyondEgress(policy, limit);
    if (beyond !== null)
      throw new PlatformError(
        "instance.unsupported",
        `${ref} wants connections to '${beyond}' (deployConfig.${field}), which this server does not allow; its operator can, with the setting egressLimit`,
      );
  }
  if (!isShared && (engine.egress.changes || reward === undefined))
    return { egress: { agent, ...(reward !== undefined && { reward }) }, warnings: [] };
  const ignored = (why: string) => [`rewardEgress ignored, rewards have the agent's policy: ${why}`];
  if (!isShared)
    return { egress: { agent }, warnings: ignored(`the engine '${engine.name}' cannot change the policy of a sandbox that runs`) };
  if (request.egress !== undefined && beyondEgress(own ?? "none", request.egress) !== null)
    throw new PlatformError(
      "instance.unsupported",
      `egress cannot be narrowed for ${ref}: its instances share a process and its network; set deployConfig.isolation to "instance"`,
    );
  const why = "instances that share a process have no sandbox of their own";
  return { egress: { agent: own ?? "none" }, warnings: reward === undefined ? [] : ignored(why) };
}
