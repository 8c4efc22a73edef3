import { isPlatformError, messageOf, PlatformError } from "@aenv/contract";
import type { SandboxSpec } from "../engine/engine.ts";
import { isKubernetesError } from "./api/error.ts";

/** Why a start failed, without the sentence around it. */
export class StartFailure extends Error {
  readonly isCapacity: boolean;

  constructor(reason: string, isCapacity = false) {
    super(reason);
    this.isCapacity = isCapacity;
  }
}

/** The error of a start, from whatever ended it. */
export function startError(spec: SandboxSpec, namespace: string, cause: unknown, log: readonly string[]): PlatformError {
  if (isPlatformError(cause)) return cause;
  const { reason, isCapacity } = reasonOf(cause, namespace);
  return new PlatformError(isCapacity ? "sandbox.no_capacity" : "sandbox.start_failed", `sandbox '${spec.id}' did not start: ${reason}`, {
    cause,
    details: { reason, log },
  });
}

/** Whether a ResourceQuota of the namespace has no room for the object now. */
export function isQuotaRefusal(error: unknown): boolean {
  return isKubernetesError(error, 403) && /exceeded quota/.test(error.message);
}

function reasonOf(cause: unknown, namespace: string): { readonly reason: string; readonly isCapacity: boolean } {
  if (cause instanceof StartFailure) return { reason: cause.message, isCapacity: cause.isCapacity };
  if (!isKubernetesError(cause)) return { reason: messageOf(cause), isCapacity: false };
  if (isQuotaRefusal(cause)) return { reason: `the quota of namespace ${namespace} is used up: ${cause.message}`, isCapacity: true };
  if (cause.status === 403 && /violates PodSecurity/.test(cause.message))
    return { reason: `the namespace ${namespace} does not admit the pod: ${cause.message}; change the pod template`, isCapacity: false };
  if (cause.status === 404) return { reason: `the namespace ${namespace} does not exist: ${cause.message}`, isCapacity: false };
  return { reason: `the Kubernetes API refused the pod (${cause.status}): ${cause.message}`, isCapacity: false };
}
