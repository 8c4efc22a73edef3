import type { Resources, SandboxOptions } from "@aenv/contract";
import type { FolderMount, SandboxSpec, SandboxSubject } from "@aenv/sandbox";
import type { ClaimSpec } from "./claim-spec.ts";
import type { Program } from "./program.ts";

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

/** What the sandbox of a program needs. */
export interface ProgramSpec extends Pick<ClaimSpec, "owner" | "variables" | "egress" | "runtime" | "resources" | "second" | "subject"> {
  readonly program: Program;
  /** The unpacked bundle; undefined if there is none. */
  readonly folder: string | undefined;
  /** Undefined while an environment is verified. */
  readonly instanceId?: string | undefined;
  /** The folder that it shares with its second container. */
  readonly mounts?: readonly FolderMount[] | undefined;
}

/** A copy of a sandbox, from a snapshot with its memory. */
export interface CopySpec extends Pick<ClaimSpec, "owner" | "egress" | "resources">, Partial<Pick<ProgramSpec, "program" | "instanceId">> {
  readonly snapshot: string;
  readonly subject?: SandboxSubject | undefined;
  readonly isTemporarySnapshot?: boolean;
}

/** How a sandbox differs from that of a blank runner. */
export interface StartOptions extends Partial<Omit<ProgramSpec, "subject">> {
  readonly subject?: SandboxSubject | undefined;
  readonly template?: string | undefined;
  readonly sandboxOptions?: SandboxOptions | undefined;
  readonly snapshot?: string | undefined;
  readonly isTemporarySnapshot?: boolean;
  /** The bundle that the process will load. */
  readonly firstFolder?: string | undefined;
}

/** The sandbox of a program, or of a runner that loads a bundle later. */
export function sandboxSpecOf(id: string, options: StartOptions, facts: RunnerFacts): SandboxSpec {
  const { program, folder, firstFolder, instanceId, sandboxOptions, runtime, template, second, snapshot, isTemporarySnapshot } = options;
  const { egress, mounts, subject } = options;
  const { runner, variables, hasSecrets = false, serverId, startTimeoutMs } = facts;
  return {
    id,
    ...(program?.spec ?? { command: runner }),
    ...(folder !== undefined && { folder }),
    ...(firstFolder !== undefined && { firstFolder }),
    variables: program === undefined ? variables : (options.variables ?? {}),
    ...(program === undefined && { isRunner: true }),
    ...(program === undefined && folder === undefined && !hasSecrets && { startsEarly: true }),
    labels: { server: serverId, role: "runner", ...(instanceId !== undefined && { role: "program", instance: instanceId }) },
    startTimeoutMs,
    ...facts.resources,
    ...options.resources,
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
