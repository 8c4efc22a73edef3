import type { SandboxSpec, SandboxSubject } from "../../engine/engine.ts";
import type { KubernetesObject } from "../api/client.ts";
import type { Pod } from "../pod/types.ts";

/** What a person looks for with `kubectl describe pod`. */
export interface PodNote {
  readonly type: "Normal" | "Warning";
  /** One word, by which events are found. */
  readonly reason: "Created" | "Claimed" | "Waiting" | "Used" | "StartFailed" | "Ended" | "SecondEnded";
  readonly message: string;
}

export interface PodEvent extends KubernetesObject {
  readonly involvedObject: object;
  readonly reason: string;
  readonly message: string;
  readonly type: string;
  readonly count: number;
  readonly firstTimestamp: string;
  readonly lastTimestamp: string;
  readonly source: { readonly component: string };
  readonly reportingComponent: string;
  readonly reportingInstance: string;
}

const COMPONENT = "aenv";
/** The API server refuses longer messages. */
const MAX_MESSAGE = 1_024;

export interface EventPlace {
  readonly namespace: string;
  /** Which server it is, such as the name of its machine. */
  readonly instance: string;
  /** Unlike those of other events. */
  readonly suffix: string;
  readonly at: Date;
}

export function eventOf({ metadata: { name, uid } }: Pod, note: PodNote, { namespace, instance, suffix, at }: EventPlace): PodEvent {
  const time = at.toISOString().replace(/\.\d+Z$/, "Z");
  return {
    apiVersion: "v1",
    kind: "Event",
    metadata: { name: `${name}.${suffix}`, namespace },
    involvedObject: { apiVersion: "v1", kind: "Pod", namespace, name, uid },
    type: note.type,
    reason: note.reason,
    message: note.message.length > MAX_MESSAGE ? `${note.message.slice(0, MAX_MESSAGE - 1)}…` : note.message,
    count: 1,
    firstTimestamp: time,
    lastTimestamp: time,
    source: { component: COMPONENT },
    reportingComponent: COMPONENT,
    reportingInstance: instance,
  };
}

export function createdNote({ id, subject }: SandboxSpec): PodNote {
  return { type: "Normal", reason: "Created", message: `Created for sandbox ${id}${purposeOf(subject)}` };
}

export function claimedNote({ id, subject }: SandboxSpec): PodNote {
  return { type: "Normal", reason: "Claimed", message: `Waited, and was claimed for sandbox ${id}${purposeOf(subject)}` };
}

export function usedNote(subject: SandboxSubject): PodNote {
  return { type: "Normal", reason: "Used", message: `Started ahead, and is used now${purposeOf(subject)}` };
}

export const waitingNote: PodNote = { type: "Normal", reason: "Waiting", message: "Created ahead: waits for a sandbox" };

export function startFailedNote(reason: string): PodNote {
  return { type: "Warning", reason: "StartFailed", message: reason };
}

export function endedNote(reason: string): PodNote {
  return { type: "Warning", reason: "Ended", message: `The sandbox ended: ${reason}` };
}

export function secondEndedNote(reason: string): PodNote {
  return { type: "Warning", reason: "SecondEnded", message: reason };
}

function purposeOf({ environment, version, instance, owner }: SandboxSubject = {}): string {
  const what = environment === undefined ? null : `${environment}${version === undefined ? "" : `@${version}`}`;
  const parts = [
    ...(instance === undefined ? [] : [`instance ${instance}`]),
    ...(what === null ? [] : [instance === undefined ? `environment ${what}` : `of ${what}`]),
    ...(owner === undefined ? [] : [`(owner ${owner})`]),
  ];
  return parts.length === 0 ? "" : ` for ${parts.join(" ")}`;
}
