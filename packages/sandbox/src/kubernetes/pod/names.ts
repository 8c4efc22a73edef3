import { createHash } from "node:crypto";
import { parseBoundedJson } from "@aenv/contract";
import type { SandboxSubject } from "../../engine/engine.ts";
import type { Pod } from "./types.ts";

/** Pods of one home are found, adopted and removed by its servers; all others are left alone. */
export const HOME_LABEL = "aenv.io/home";
export const EGRESS_LABEL = "aenv.io/egress";
/** What the pod is made from, as a digest: pods with the same value can stand in for each other until they are given a program. */
export const POOL_LABEL = "aenv.io/pool";
/** The pod waits for a sandbox. Whoever removes this label has it. */
export const WAITING_LABEL = "aenv.io/waiting";
/** Labels of the sandbox, as the platform gave them. */
const PLATFORM_PREFIX = "platform.aenv.io/";
/** Labels that the creator of the instance has chosen, under a prefix of their own: they cannot replace one of the platform's. */
const USER_PREFIX = "aenv.io/label-";
const INSTANCE_LABEL = "aenv.io/instance";

/** Annotations: what a label cannot hold, or nobody selects by. */
/** Annotation of a pod template: the owners whose environments may name it, separated by commas, or `*`. */
export const OWNERS_ANNOTATION = "aenv.io/allowed-owners";
export const ID_ANNOTATION = "aenv.io/sandbox";
export const LABELS_ANNOTATION = "aenv.io/labels";
export const STATE_ANNOTATION = "aenv.io/state";
export const READY_ANNOTATION = "aenv.io/ready";

/** Labels by the fields of a subject: those of the original, and ours. */
const SUBJECT_LABELS = {
  environment: "business/aenv-name",
  version: "business/aenv-version",
  owner: "business/aenv-owner",
  ttl: "business/aenv-ttl",
  instance: INSTANCE_LABEL,
} as const satisfies Record<string, string>;

const MAX_NAME = 63;
const SUFFIX = 6;

/**
 * The pod of a sandbox: the environment, if it is known, and six letters or digits, as the original names pods. The same for the same
 * sandbox of the same home, so that the API server refuses a second one.
 */
export function podName(homeId: string, id: string, environment: string = id): string {
  const digest = createHash("sha256").update(`${homeId}\n${id}`).digest("hex");
  const suffix = BigInt(`0x${digest.slice(0, 16)}`)
    .toString(36)
    .padStart(SUFFIX, "0")
    .slice(-SUFFIX);
  const words = environment
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .slice(0, MAX_NAME - SUFFIX - 1)
    .replace(/^-+|-+$/g, "");
  return words === "" ? `sandbox-${suffix}` : `${words}-${suffix}`;
}

export function isLabelValue(text: string): boolean {
  return text.length <= 63 && /^(?:[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?)?$/.test(text);
}

export function isLabelName(text: string): boolean {
  return text.length > 0 && isLabelValue(text);
}

/** Both kinds of metadata of an object. */
export interface PodMarks {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** The platform's labels. All of them are also in one annotation, from which they are read back. */
export function labelsOf(labels: Readonly<Record<string, string>>): PodMarks {
  const made = marksOf(Object.entries(labels).map(([key, value]) => [`${PLATFORM_PREFIX}${key}`, value]));
  return { labels: made.labels, annotations: { ...made.annotations, [LABELS_ANNOTATION]: JSON.stringify(labels) } };
}

/** What the sandbox is used for, with the labels of the original. */
export function subjectMarks({ labels = {}, ...subject }: SandboxSubject): PodMarks {
  const named = Object.entries(SUBJECT_LABELS).flatMap(([field, key]) => {
    const value = subject[field as keyof typeof subject];
    return value === undefined || value === "" ? [] : [[key, value] as const];
  });
  return marksOf([...named, ...Object.entries(labels).map(([key, value]) => [`${USER_PREFIX}${key}`, value] as const)]);
}

/** Whether the pod has them already. */
export function hasMarks(pod: Pod | null, { labels, annotations }: PodMarks): boolean {
  const has = (own: Readonly<Record<string, string>> = {}, marks: Readonly<Record<string, string>>) =>
    Object.entries(marks).every(([key, value]) => own[key] === value);
  return pod !== null && has(pod.metadata.labels, labels) && has(pod.metadata.annotations, annotations);
}

/** Labels that Kubernetes accepts. The others are annotations, unless their name is none of Kubernetes at all. */
function marksOf(all: readonly (readonly [key: string, value: string])[]): PodMarks {
  const labels: Record<string, string> = {};
  const annotations: Record<string, string> = {};
  for (const [key, value] of all) {
    if (!isLabelName(key.slice(key.indexOf("/") + 1))) continue;
    (isLabelValue(value) ? labels : annotations)[key] = value;
  }
  return { labels, annotations };
}

export function readLabels(annotations: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  try {
    return parseBoundedJson(annotations[LABELS_ANNOTATION] ?? "{}") as Record<string, string>;
  } catch {
    return {};
  }
}
