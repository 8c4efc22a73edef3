import { createHash, randomBytes } from "node:crypto";
import { type LinkParameters, pickResources } from "@aenv/contract";
import type { SandboxSpec, SandboxSubject } from "@aenv/sandbox";
import { labelsOf } from "./instance-sandboxes.ts";
import type { TaskSandboxPolicy, TaskSandboxSpec } from "./policy.ts";
import { SHARED_PATH } from "./shared-folders.ts";

/** What the code of an instance asks for, and what it gets of it. */
export interface WantedSandbox extends LinkParameters<"/open"> {
  readonly spec: TaskSandboxSpec;
  readonly policy: TaskSandboxPolicy;
}

export interface SpecSettings {
  readonly serverId: string;
  readonly hostId: string;
  readonly startTimeoutMs: number;
  /** The folder that the instance shares with its second container. */
  readonly sharedFolder: string;
}

/** The sandbox that an engine creates for an instance. */
export function sandboxSpec(
  { id, owner, subject }: { readonly id: string; readonly owner: string; readonly subject?: SandboxSubject },
  { name, episode, purpose, snapshot, networks, volumes, program, spec, policy }: WantedSandbox,
  { serverId, hostId, startTimeoutMs, sharedFolder }: SpecSettings,
): SandboxSpec {
  const { image, tmpfs, hosts, capabilities, egress } = spec;
  const { env: variables = {}, ...own } = program ?? {};
  const mounts = [{ source: sharedFolder, target: SHARED_PATH, isReadOnly: false }];
  // No other episode, also of the same instance, has this network or volume.
  const sharedId = (shared: string) =>
    createHash("sha256")
      .update(JSON.stringify([id, episode, shared]))
      .digest("hex")
      .slice(0, 20);
  return {
    id: `task-${randomBytes(10).toString("hex")}`,
    labels: labelsOf(serverId, { instance: id, owner, host: hostId, name, episode, spec }),
    subject,
    startTimeoutMs,
    command: [],
    listening: { kind: "none" },
    variables,
    program: program && own,
    ...(image !== null && { image }),
    snapshot,
    mounts: purpose === "second" && policy.hasSharedFolder ? mounts : undefined,
    volumes: volumes?.map((one) => ({ id: sharedId(one.name), path: one.path, isReadOnly: one.is_read_only })),
    tmpfs,
    networks: networks?.map((one) => ({ id: sharedId(one.name), aliases: one.aliases })),
    hosts,
    egress,
    runtime: policy.runtime,
    capabilities,
    resources: pickResources(spec),
  };
}
