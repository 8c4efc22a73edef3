import { type CapabilitySet, PlatformError } from "@aenv/contract";

/** What sandboxes may have at most. `mapped`: the capabilities of Docker only where root of a sandbox is not root of this machine. */
export type CapabilityLimit = "minimal" | "mapped" | "docker";

export const DEFAULT_CAPABILITY_LIMIT: CapabilityLimit = "mapped";

/** Throws if sandboxes may not have these capabilities here. `findProblem`: why root of a sandbox is root of this machine; null if it is not. */
export async function assertCapabilities(
  capabilities: CapabilitySet | undefined,
  limit: CapabilityLimit,
  findProblem: () => Promise<string | null>,
): Promise<void> {
  if (capabilities !== "docker" || limit === "docker") return;
  if (limit === "minimal") throw capabilitiesRefused("this server does not allow them: its setting taskCapabilities is 'minimal'");
  const problem = await findProblem();
  if (problem === null) return;
  throw capabilitiesRefused(
    `root of a sandbox would have them as root of this machine, which this server does not allow: ${problem}. Its operator can change that, or allow them all the same with --task-capabilities docker`,
  );
}

/** A sandbox without them would start, and what its task needs would fail in it. */
export function capabilitiesRefused(why: string): PlatformError {
  return new PlatformError(
    "instance.unsupported",
    `the sandbox needs the capabilities of Docker (deployConfig.taskSandboxes.capabilities), as sudo, sshd and chroot do, and ${why}`,
  );
}

/**
 * What root of a sandbox may do: own and change any file of the sandbox, change users, end processes. Not among them: raw sockets,
 * device nodes, mounts, network settings, the clock.
 */
const MINIMAL = [
  "CAP_CHOWN",
  "CAP_DAC_OVERRIDE",
  "CAP_FOWNER",
  "CAP_FSETID",
  "CAP_KILL",
  "CAP_NET_BIND_SERVICE",
  "CAP_SETGID",
  "CAP_SETUID",
] as const;

/** `docker`: the default of Docker, which is also the limit of what can be asked for. No mounts, network settings or clock either. */
export const CAPABILITIES = {
  minimal: MINIMAL,
  docker: [...MINIMAL, "CAP_AUDIT_WRITE", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETPCAP", "CAP_SYS_CHROOT"],
} as const satisfies Record<CapabilitySet, readonly string[]>;
