import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";
import { isSandboxId } from "../lifecycle/sandbox-id.ts";

/** Throws for a specification that no pod can satisfy, with what to do. */
export function assertValid(spec: SandboxSpec): void {
  const { id } = spec;
  const unsupported = (what: string) => new PlatformError("sandbox.unsupported", `sandbox '${id}' ${what}`);
  if (!isSandboxId(id))
    throw new PlatformError("request.invalid", `'${id}' is not a valid sandbox id: use up to 128 letters, digits, '.', '_' and '-'`);
  if (spec.command.length === 0 && spec.image === undefined && spec.listening?.kind !== "none")
    throw new PlatformError("request.invalid", `sandbox '${id}' has neither a command nor an image to run`);
  for (const [name, value] of Object.entries({ memoryMb: spec.memoryMb, cpus: spec.cpus, diskMb: spec.diskMb, shmMb: spec.shmMb }))
    if (value !== undefined && !(Number.isFinite(value) && value > 0))
      throw new PlatformError("request.invalid", `the limit ${name} of sandbox '${id}' is ${value}; it must be more than 0`);
  if (spec.snapshot !== undefined) throw unsupported("starts from a snapshot, which the kubernetes engine does not have");
  if (spec.processes !== undefined)
    throw unsupported("limits processes, which only the nodes can: set podPidsLimit of the kubelet, and remove the limit");
  if (spec.cpuSeconds !== undefined) throw unsupported("limits CPU time, which Kubernetes cannot; remove the limit");
  if ((spec.mounts ?? []).length > 0)
    throw unsupported("mounts folders of the server's machine, which nodes do not have: mount a volume with a pod template");
  for (const image of [spec.image, spec.second?.image])
    if (image !== undefined && /^(?:oci|docker-archive|dir):/.test(image))
      throw unsupported(`has the image '${image}', a file of the server's machine: push it to a registry that the nodes reach`);
}

/** Policies of a namespace select by labels, and the platform has one for all or nothing. */
export function egressOf({ id, egress = "none" }: { readonly id: string; readonly egress?: EgressPolicy | undefined }): "none" | "open" {
  if (isWord(egress)) return egress;
  throw new PlatformError(
    "sandbox.unsupported",
    `sandbox '${id}' allows single destinations, which the kubernetes engine cannot enforce: use the oci engine, or 'none' or 'open'`,
  );
}

function isWord(policy: EgressPolicy): policy is "none" | "open" {
  return typeof policy === "string";
}
