import type { EgressPolicy } from "@aenv/contract";
import type { SandboxRuntime, SandboxSpec } from "../engine/engine.ts";
import { unsupported } from "../lifecycle/spec-check.ts";
import { assertCapabilities, type CapabilityLimit, capabilitiesRefused } from "../spec/capabilities.ts";
import type { ChosenRuntime, Daemon } from "./daemon.ts";

/** gVisor does not use the daemon's name server. Podman gives the machine an address in every network. */
export function assertNetworks(id: string, { isPodman }: Daemon, runtime: SandboxRuntime): void {
  if (!isPodman && runtime === "runc") return;
  throw unsupported(
    id,
    `cannot share a private network or a volume: that needs Docker and the runtime runc, not ${isPodman ? "Podman" : runtime}`,
  );
}

/** Throws if a container may not have its capabilities, or if they would not help programs such as sudo. */
export async function assertCapable(
  { capabilities }: SandboxSpec,
  limit: CapabilityLimit,
  { mapsUsers }: Daemon,
  { runtime, setsUserIds }: ChosenRuntime,
): Promise<void> {
  const isRoot = !mapsUsers && runtime === "runc";
  await assertCapabilities(capabilities, limit, async () => (isRoot ? "the daemon maps no users (its setting userns-remap)" : null));
  if (capabilities === "docker" && !setsUserIds)
    throw capabilitiesRefused(
      'set-user-id programs have no effect in gVisor without an option: register the runtime with "--allow-suid" in its runtimeArgs in /etc/docker/daemon.json, and restart the daemon',
    );
}

/** What the policies of a container depend on. */
export interface ContainerKind {
  readonly runtime: SandboxRuntime;
  readonly isPodman: boolean;
  /** Why its packets cannot be filtered; null if they can. */
  readonly filterProblem: string | null;
}

/** Why a container cannot have these policies, one after the other; null if it can. */
export function egressProblem(policies: readonly EgressPolicy[], kind: ContainerKind): string | null {
  if (kind.filterProblem !== null && policies.some((policy) => typeof policy !== "string"))
    return `the docker engine can allow single destinations only if it filters the packets of containers, and ${kind.filterProblem}; run the server as root on the daemon's machine and in its network namespace, use the oci engine, or allow 'none' or 'open'`;
  // A container whose packets are filtered keeps its network; the others lose it with `none`.
  const gets =
    kind.filterProblem === null
      ? policies[0] === "none" && policies.some((policy) => policy !== "none")
      : policies.some((policy, index) => policy === "open" && policies[index - 1] === "none");
  return gets && (kind.runtime === "runsc" || (kind.isPodman && policies[0] === "none")) ? noNetworkLater(kind) : null;
}

/** Why a container that runs without a network cannot get one. */
export function noNetworkLater({ runtime }: Pick<ContainerKind, "runtime">): string {
  return runtime === "runsc"
    ? "a container with gVisor cannot get a network while it runs, because gVisor reads its network at the start; use runc or the oci engine"
    : "Podman gives no network to a container that was created without one; use Docker or the oci engine";
}
