import type { Resources } from "@aenv/contract";
import type { SandboxSpec } from "@aenv/sandbox";
import type { StartRequest } from "./start-request.ts";

/** What all sandboxes of a server have in common. */
export interface RunnerFacts {
  /** The blank runner's command line. */
  readonly runner: readonly string[];
  /** Environment variables of every runner. */
  readonly variables: Readonly<Record<string, string>>;
  /** Whether these contain a secret, so that an engine must not show them. */
  readonly hasSecrets?: boolean;
  readonly serverId: string;
  readonly startTimeoutMs: number;
  /** Those that the engine enforces, chosen by the operator. Environments must not exceed them. */
  readonly resources?: Resources;
}

/** The sandbox of a program, or of a runner that loads a bundle later. */
export function sandboxSpecOf(id: string, request: StartRequest, facts: RunnerFacts): SandboxSpec {
  const { program, folder, instanceId, sandboxOptions, runtime, template, second, snapshot, isTemporarySnapshot } = request;
  const { egress, mounts, subject } = request;
  const { runner, variables, hasSecrets = false, serverId, startTimeoutMs } = facts;
  return {
    id,
    ...(program === undefined
      ? {
          command: runner,
          variables,
          isRunner: true,
          ...(!hasSecrets && { startsEarly: true }),
          ...(folder !== undefined && { firstFolder: folder }),
        }
      : { ...program.spec, variables: request.variables ?? {}, ...(folder !== undefined && { folder }) }),
    labels: { server: serverId, role: "runner", ...(instanceId !== undefined && { role: "program", instance: instanceId }) },
    startTimeoutMs,
    resources: { ...facts.resources, ...request.resources },
    ...(sandboxOptions && { sandboxOptions }),
    ...(runtime && { runtime }),
    ...(template !== undefined && { template }),
    ...(second !== undefined && { second }),
    ...(snapshot !== undefined && { snapshot }),
    ...(isTemporarySnapshot && { isTemporarySnapshot }),
    ...(egress !== undefined && { egress }),
    ...(mounts !== undefined && { mounts }),
    ...(subject !== undefined && { subject }),
  };
}
