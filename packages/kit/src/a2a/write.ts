import { isObject, type Json } from "@aenv/contract";
import { type ConversationTask, isRunning, type Message, type StoredArtifact, type TaskStatus, type TaskUpdate } from "../agent/task.ts";
import type { Part } from "../definition/agent.ts";
import { stateName } from "./fields.ts";

export interface TaskView {
  /** The last messages that are shown; all if undefined. */
  readonly historyLength?: number | undefined;
  readonly includesArtifacts?: boolean;
}

/** Writes tasks, messages and events in one version of the protocol. */
export interface Writer {
  readonly task: (task: ConversationTask, view?: TaskView) => object;
  /** What a message that was sent returns. */
  readonly sent: (result: SentResult, view?: TaskView) => object;
  /** An event of a stream. */
  readonly event: (task: ConversationTask, update: TaskUpdate) => object;
}

export type SentResult =
  | { readonly kind: "task"; readonly task: ConversationTask }
  | { readonly kind: "message"; readonly message: Message };

function shownHistory({ history }: ConversationTask, { historyLength }: TaskView): readonly Message[] {
  if (historyLength === undefined) return history;
  return historyLength === 0 ? [] : history.slice(-historyLength);
}

const timeOf = (status: TaskStatus) => new Date(status.at).toISOString();

const newMessage = ({ messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds }: Message): object => ({
  messageId,
  role: role === "user" ? "ROLE_USER" : "ROLE_AGENT",
  parts,
  contextId,
  taskId,
  metadata,
  extensions,
  referenceTaskIds,
});

const newStatus = (status: TaskStatus): object => ({
  state: stateName(status.state),
  ...(status.message !== null && { message: newMessage(status.message) }),
  timestamp: timeOf(status),
});

const newTask: Writer["task"] = (task, view = {}) => {
  const history = shownHistory(task, view);
  return {
    id: task.id,
    contextId: task.contextId,
    status: newStatus(task.status),
    ...(task.artifacts.length > 0 && view.includesArtifacts !== false && { artifacts: task.artifacts }),
    ...(history.length > 0 && { history: history.map(newMessage) }),
  };
};

/** Version 1.0: each result is an object with one field that says what it is. */
export const writer: Writer = {
  task: newTask,
  sent: (result, view) => (result.kind === "task" ? { task: newTask(result.task, view) } : { message: newMessage(result.message) }),
  event: ({ id: taskId, contextId }, update) =>
    update.kind === "status"
      ? { statusUpdate: { taskId, contextId, status: newStatus(update.status) } }
      : { artifactUpdate: { taskId, contextId, artifact: update.artifact, append: update.append, lastChunk: update.last } },
};

const oldPart = (part: Part): object => {
  const { metadata, mediaType: mimeType, filename: name } = part;
  if ("text" in part) return { kind: "text", text: part.text, metadata };
  if ("raw" in part) return { kind: "file", file: { bytes: part.raw, name, mimeType }, metadata };
  if ("url" in part) return { kind: "file", file: { uri: part.url, name, mimeType }, metadata };
  return { kind: "data", data: oldData(part.data), metadata };
};

/** Version 0.3 has objects only. */
function oldData(data: Json): object {
  return isObject(data) ? data : { value: data };
}

const oldMessage = ({ messageId, role, parts, contextId, taskId, metadata, extensions, referenceTaskIds }: Message): object => ({
  kind: "message",
  messageId,
  role,
  parts: parts.map(oldPart),
  contextId,
  taskId,
  metadata,
  extensions,
  referenceTaskIds,
});

const oldStatus = (status: TaskStatus): object => ({
  state: status.state,
  ...(status.message !== null && { message: oldMessage(status.message) }),
  timestamp: timeOf(status),
});

const oldArtifact = ({ parts, ...artifact }: StoredArtifact): object => ({ ...artifact, parts: parts.map(oldPart) });

const oldTask: Writer["task"] = (task, view = {}) => {
  const history = shownHistory(task, view);
  return {
    kind: "task",
    id: task.id,
    contextId: task.contextId,
    status: oldStatus(task.status),
    ...(task.artifacts.length > 0 && { artifacts: task.artifacts.map(oldArtifact) }),
    ...(history.length > 0 && { history: history.map(oldMessage) }),
  };
};

/** Version 0.3: each result says in `kind` what it is. */
export const oldWriter: Writer = {
  task: oldTask,
  sent: (result, view) => (result.kind === "task" ? oldTask(result.task, view) : oldMessage(result.message)),
  event: ({ id: taskId, contextId }, update) =>
    update.kind === "status"
      ? { kind: "status-update", taskId, contextId, status: oldStatus(update.status), final: !isRunning(update.status.state) }
      : {
          kind: "artifact-update",
          taskId,
          contextId,
          artifact: oldArtifact(update.artifact),
          append: update.append,
          lastChunk: update.last,
        },
};
