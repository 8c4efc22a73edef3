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
  if (typeof policy === "string") return;
  throw new PlatformError(
    "sandbox.unsupported",
    `sandbox '${id}' allows single destinations, which the docker engine cannot enforce: use the oci engine, or 'none' or 'open'`,
  );
}
