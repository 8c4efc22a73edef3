import { isObject, type Json, type JsonObject } from "@aenv/contract";
import type { Part } from "../definition/agent.ts";

/** The states of a task, without the prefix of 1.0. */
export type RemoteState = "submitted" | "working" | "input-required" | "auth-required" | "completed" | "failed" | "canceled" | "rejected";

export interface RemoteArtifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
}

export interface RemoteTask {
  readonly id: string;
  readonly contextId: string | null;
  readonly state: RemoteState;
  /** The message of the status, if it has one. */
  readonly said: readonly Part[] | null;
  readonly artifacts: readonly RemoteArtifact[];
}

/** What an agent sends, in either version. */
export type RemoteEvent =
  | { readonly kind: "message"; readonly contextId: string | null; readonly parts: readonly Part[] }
  | { readonly kind: "task"; readonly task: RemoteTask }
  | { readonly kind: "status"; readonly taskId: string; readonly state: RemoteState; readonly said: readonly Part[] | null }
  | {
      readonly kind: "artifact";
      readonly taskId: string;
      readonly artifact: RemoteArtifact;
      readonly append: boolean;
      readonly last: boolean;
    };

type Fields = Readonly<Record<string, unknown>>;

const STATES: ReadonlySet<string> = new Set<RemoteState>([
  "submitted",
  "working",
  "input-required",
  "auth-required",
  "completed",
  "failed",
  "canceled",
  "rejected",
]);

/** The task waits for its caller, or has ended. */
export function isOver(state: RemoteState): boolean {
  return state !== "submitted" && state !== "working";
}

/** Reads what a send or a stream answers. 1.0 wraps each kind, 0.3 names it. */
export function readEvent(value: unknown): RemoteEvent {
  if (!isObject(value)) throw new Error("the agent answered with no object");
  const kinds = ["task", "message", "statusUpdate", "artifactUpdate"] as const;
  const wrapped = kinds.find((kind) => isObject(value[kind]));
  const fields = wrapped === undefined ? value : (value[wrapped] as Fields);
  switch (wrapped ?? value.kind) {
    case "task":
      return { kind: "task", task: readTask(fields) };
    case "message":
      return { kind: "message", contextId: idOf(fields.contextId), parts: readParts(fields.parts) };
    case "statusUpdate":
    case "status-update": {
      const { state, said } = readStatus(fields.status);
      return { kind: "status", taskId: idOf(fields.taskId) ?? "", state, said };
    }
    case "artifactUpdate":
    case "artifact-update":
      return {
        kind: "artifact",
        taskId: idOf(fields.taskId) ?? "",
        artifact: readArtifact(fields.artifact),
        append: fields.append === true,
        last: fields.lastChunk === true,
      };
    default:
      throw new Error("the agent answered with neither a task nor a message");
  }
}

export function readTask(value: unknown): RemoteTask {
  const fields: Fields = isObject(value) ? value : {};
  const id = idOf(fields.id);
  if (id === null) throw new Error("the agent answered with a task without an id");
  const artifacts = Array.isArray(fields.artifacts) ? fields.artifacts.map(readArtifact) : [];
  return { id, contextId: idOf(fields.contextId), ...readStatus(fields.status), artifacts };
}

function readStatus(value: unknown): { readonly state: RemoteState; readonly said: readonly Part[] | null } {
  const fields: Fields = isObject(value) ? value : {};
  const state = String(fields.state)
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", "-");
  if (!STATES.has(state)) throw new Error(`the agent answered with the unknown state '${state.slice(0, 50)}'`);
  const { message } = fields;
  return { state: state as RemoteState, said: isObject(message) ? readParts(message.parts) : null };
}

function readArtifact(value: unknown): RemoteArtifact {
  const fields: Fields = isObject(value) ? value : {};
  const { name, description } = fields;
  return {
    artifactId: idOf(fields.artifactId) ?? "artifact",
    ...(typeof name === "string" && { name }),
    ...(typeof description === "string" && { description }),
    parts: readParts(fields.parts),
  };
}

export function readParts(value: unknown): readonly Part[] {
  return (Array.isArray(value) ? value : []).filter(isObject).map(readPart);
}

function readPart(fields: Fields): Part {
  const file: Fields = isObject(fields.file) ? fields.file : {};
  const [mediaType, filename] = [fields.mediaType ?? file.mimeType, fields.filename ?? file.name];
  const info = {
    ...(typeof mediaType === "string" && { mediaType }),
    ...(typeof filename === "string" && { filename }),
    ...(isObject(fields.metadata) && { metadata: fields.metadata as JsonObject }),
  };
  const [raw, url] = [fields.raw ?? file.bytes, fields.url ?? file.uri];
  if (typeof fields.text === "string") return { text: fields.text, ...info };
  if (typeof raw === "string") return { raw, ...info };
  if (typeof url === "string") return { url, ...info };
  if (fields.data !== undefined) return { data: fields.data as Json, ...info };
  return { text: "", ...info };
}

/** A part as the version writes it. */
export function writePart(part: Part, version: "1.0" | "0.3"): object {
  if (version === "1.0") return part;
  const { mediaType: mimeType, filename: name, metadata } = part;
  const more = metadata !== undefined && { metadata };
  const named = { ...(mimeType !== undefined && { mimeType }), ...(name !== undefined && { name }) };
  if ("text" in part) return { kind: "text", text: part.text, ...more };
  if ("raw" in part) return { kind: "file", file: { bytes: part.raw, ...named }, ...more };
  if ("url" in part) return { kind: "file", file: { uri: part.url, ...named }, ...more };
  // 0.3 has only objects as data.
  return { kind: "data", data: isObject(part.data) ? part.data : { value: part.data }, ...more };
}

function idOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" && value.length <= 512 ? value : null;
}
