import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type { SandboxRuntime, SandboxSpec } from "../engine.ts";
import { isSandboxId } from "../process/sandbox-folder.ts";
import type { Daemon } from "./daemon.ts";

export function assertValid(spec: SandboxSpec): void {
  const { id, egress = "none" } = spec;
  if (!isSandboxId(id))
    throw new PlatformError("request.invalid", `'${id}' is not a valid sandbox id: use up to 128 letters, digits, '.', '_' and '-'`);
  if (spec.command.length === 0 && spec.image === undefined && spec.listening?.kind !== "none")
    throw new PlatformError("request.invalid", `sandbox '${id}' has neither a command nor an image to run`);
  assertEgress(id, egress);
  if (spec.snapshot !== undefined)
    throw new PlatformError("sandbox.unsupported", `sandbox '${id}' starts from a snapshot, which the docker engine does not have`);
}

/** gVisor does not use the daemon's name server. Podman gives the machine an address in every network. */
export function assertNetworks(id: string, { isPodman }: Daemon, runtime: SandboxRuntime): void {
  if (!isPodman && runtime === "runc") return;
  throw new PlatformError(
    "sandbox.unsupported",
    `sandbox '${id}' cannot share a private network or a volume: that needs Docker and the runtime runc, not ${isPodman ? "Podman" : runtime}`,
  );
}

export function assertEgress(id: string, policy: EgressPolicy): void {
  const problem = egressProblem([policy], null);
  if (problem !== null) throw new PlatformError("sandbox.unsupported", `the policy of sandbox '${id}' cannot be applied: ${problem}`);
}

/** Why a container cannot have these policies, one after the other; null if it can. Without a kind of container, as far as that is clear. */
export function egressProblem(
  policies: readonly EgressPolicy[],
  kind: { readonly runtime: SandboxRuntime; readonly isPodman: boolean } | null,
): string | null {
  if (policies.some((policy) => typeof policy !== "string"))
    return "the docker engine cannot allow single destinations; use the oci engine, or 'none' or 'open'";
  const gets = policies.some((policy, index) => index > 0 && policy === "open" && policies[index - 1] === "none");
  if (gets && kind?.runtime === "runsc")
    return "a container with gVisor cannot get a network while it runs, because gVisor reads its network at the start; use runc or the oci engine";
  if (gets && kind?.isPodman === true && policies[0] === "none")
    return "Podman gives no network to a container that was created without one; use Docker or the oci engine";
  return null;
}
