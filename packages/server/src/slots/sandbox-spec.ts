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
  const { resources, runtime, template, second, egress, mounts, sandboxOptions, snapshot, isTemporarySnapshot, subject } = request;
  const { program, folder, instanceId } = request;
  const { runner, variables, hasSecrets = false, serverId, startTimeoutMs } = facts;
  const labels = { server: serverId, role: "runner", ...(instanceId !== undefined && { role: "program", instance: instanceId }) };
  const own = { runtime, template, second, egress, mounts, sandboxOptions, snapshot, isTemporarySnapshot, subject };
  const common = { id, labels, startTimeoutMs, resources: { ...facts.resources, ...resources }, ...own };
  if (program !== undefined) return { ...common, ...program.spec, variables: request.variables ?? {}, folder };
  return { ...common, command: runner, variables, isRunner: true, firstFolder: folder, ...(!hasSecrets && { startsEarly: true }) };
}
