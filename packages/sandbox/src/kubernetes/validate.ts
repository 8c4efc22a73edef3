import { type EgressPolicy, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";
import { assertValid, type Refusals, unsupported } from "../lifecycle/spec-check.ts";

export const REFUSALS: Refusals = {
  snapshot: "starts from a snapshot, which the kubernetes engine does not have",
  processes: "limits processes, which only the nodes can: set podPidsLimit of the kubelet, and remove the limit",
  cpuSeconds: "limits CPU time, which Kubernetes cannot; remove the limit",
};

/** Throws for a specification that no pod can satisfy, with what to do. */
export function assertPod(spec: SandboxSpec): void {
  const { id, resources = {} } = spec;
  assertValid(spec, REFUSALS);
  for (const [name, value] of Object.entries(resources))
    if (!(Number.isFinite(value) && value > 0))
      throw new PlatformError("request.invalid", `the limit ${name} of sandbox '${id}' is ${value}; it must be more than 0`);
  if ((spec.mounts ?? []).length > 0)
    throw unsupported(id, "mounts folders of the server's machine, which nodes do not have: mount a volume with a pod template");
  for (const image of [spec.image, spec.second?.image])
    if (image !== undefined && /^(?:oci|docker-archive|dir):/.test(image))
      throw unsupported(id, `has the image '${image}', a file of the server's machine: push it to a registry that the nodes reach`);
}

/** Policies of a namespace select by labels, and the platform has one for all or nothing. */
export function egressOf({ id, egress = "none" }: { readonly id: string; readonly egress?: EgressPolicy | undefined }): "none" | "open" {
  if (isWord(egress)) return egress;
  throw unsupported(id, "allows single destinations, which the kubernetes engine cannot enforce: use the oci engine, or 'none' or 'open'");
}

function isWord(policy: EgressPolicy): policy is "none" | "open" {
  return typeof policy === "string";
}
