import { createHash } from "node:crypto";
import { ID_ANNOTATION, LABELS_ANNOTATION, POOL_LABEL, STATE_ANNOTATION, WAITING_LABEL } from "../pod/names.ts";
import { type PodInput, podOf } from "../pod/pod.ts";
import type { Pod } from "../pod/types.ts";

/** Pods that can stand in for each other until they are given a program. */
export interface PodKind {
  readonly digest: string;
  /** Makes a pod of this kind that waits for a sandbox. */
  readonly waiting: (name: string) => Pod;
}

/** Null for a pod that runs its image's own program: it has no init that could be given another one. */
export function kindOf(input: PodInput): PodKind | null {
  if (!input.state.hasInit) return null;
  const { subject: _, ...spec } = input.spec;
  const { metadata, ...pod } = podOf({
    ...input,
    spec: { ...spec, id: "waiting", labels: {}, ...(!input.state.startsEarly && { variables: {} }) },
  });
  const { [ID_ANNOTATION]: _id, [LABELS_ANNOTATION]: _labels, [STATE_ANNOTATION]: state = "", ...annotations } = metadata.annotations ?? {};
  const digest = createHash("sha256")
    .update(JSON.stringify([metadata.labels, annotations, pod]))
    .digest("hex")
    .slice(0, 16);
  const labels = { ...metadata.labels, [POOL_LABEL]: digest, [WAITING_LABEL]: "true" };
  const own = { ...annotations, [STATE_ANNOTATION]: state };
  return { digest, waiting: (name) => ({ ...pod, metadata: { name, labels, annotations: own } }) };
}

/** The pod of a sandbox as it is created, if none waits. */
export function withKind(pod: Pod, kind: PodKind | null): Pod {
  if (kind === null) return pod;
  return { ...pod, metadata: { ...pod.metadata, labels: { ...pod.metadata.labels, [POOL_LABEL]: kind.digest } } };
}

/** Makes a waiting pod that of a sandbox. The version is the condition: the API server refuses it if anything has changed since. */
export function claimOf({ metadata: { uid, resourceVersion } }: Pod, { metadata }: Pod): { readonly metadata: object } {
  const labels = { ...metadata.labels, [WAITING_LABEL]: null };
  return { metadata: { uid, resourceVersion, labels, annotations: metadata.annotations } };
}

export function isWaiting({ metadata }: Pod): boolean {
  return metadata.labels?.[WAITING_LABEL] !== undefined;
}

export function digestOf({ metadata }: Pod): string | null {
  return metadata.labels?.[POOL_LABEL] ?? null;
}

/** The first name that no pod has. */
export function freeName(digest: string, isTaken: (name: string) => boolean): string {
  for (let at = 1; ; at++) {
    const name = `pool-${digest}-${at}`;
    if (!isTaken(name)) return name;
  }
}
