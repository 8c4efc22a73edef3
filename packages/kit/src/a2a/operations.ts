import type { Conversations } from "../agent/conversations.ts";
import { type ConversationTask, isEnded, isRunning, type TaskUpdate } from "../agent/task.ts";
import { A2aError, wrongField } from "./error.ts";
import { booleanField, field, fieldsOf, integerField, messageField, requiredText, stateField, textField } from "./fields.ts";
import { oldWriter, type Writer, writer } from "./write.ts";

type Fields = Readonly<Record<string, unknown>>;

/** Receives the events of a stream, each as an object of the protocol. */
export interface EventSink {
  send(event: object): void;
  end(): void;
  /** Called once when the client has gone. */
  onGone(listener: () => void): void;
}

export interface Call {
  readonly conversations: Conversations;
  readonly params: Fields;
  readonly version: "1.0" | "0.3";
  /** Fires when the client has gone. */
  readonly signal: AbortSignal;
}

/** An operation that answers once, or that sends a stream of events. */
export type Operation =
  | { readonly kind: "answer"; readonly run: (call: Call) => object | Promise<object> }
  | { readonly kind: "stream"; readonly run: (call: Call, open: () => EventSink) => Promise<void> };

const writerOf = ({ version }: Call): Writer => (version === "1.0" ? writer : oldWriter);

/** Blocks until the task has ended or needs input, unless the caller does not want to wait. */
async function send(call: Call): Promise<object> {
  const { conversations, params, version, signal } = call;
  const message = messageField(params, version);
  const configuration = configurationOf(params);
  const view = { historyLength: integerField(configuration, "historyLength", 0) };
  const waits =
    version === "1.0" ? booleanField(configuration, "returnImmediately") !== true : booleanField(configuration, "blocking") !== false;
  const sent = await conversations.send(message);
  if (sent.kind === "task" && waits) await conversations.settled(sent.task.id, signal);
  return writerOf(call).sent(sent, view);
}

async function stream(call: Call, open: () => EventSink): Promise<void> {
  const { conversations, params, version } = call;
  const message = messageField(params, version);
  const view = { historyLength: integerField(configurationOf(params), "historyLength", 0) };
  const written = writerOf(call);
  // The task is written before its turn begins, so that the stream has all of its events.
  const sent = await conversations.send(message, (task) => {
    const sink = open();
    sink.send(written.sent({ kind: "task", task }, view));
    follow(conversations, task, written, sink);
  });
  if (sent.kind === "task") return;
  const sink = open();
  sink.send(written.sent(sent));
  sink.end();
}

async function subscribe(call: Call, open: () => EventSink): Promise<void> {
  const { conversations, params } = call;
  const task = conversations.get(requiredText(params, "id"));
  if (isEnded(task.status.state))
    throw new A2aError("UNSUPPORTED_OPERATION", `task '${task.id}' is ${task.status.state}: it has no further events`);
  const written = writerOf(call);
  const sink = open();
  sink.send(written.sent({ kind: "task", task }));
  follow(conversations, task, written, sink);
}

/** Sends all later events of the task, until it has ended or needs input. */
function follow(conversations: Conversations, task: ConversationTask, written: Writer, sink: EventSink): void {
  const stop = conversations.follow(task.id, (update: TaskUpdate) => {
    sink.send(written.event(task, update));
    if (update.kind === "artifact" || isRunning(update.status.state)) return;
    stop();
    sink.end();
  });
  sink.onGone(stop);
}

function get(call: Call): object {
  const { conversations, params } = call;
  const historyLength = integerField(params, "historyLength", 0);
  return writerOf(call).task(conversations.get(requiredText(params, "id")), { historyLength });
}

function cancel(call: Call): object {
  return writerOf(call).task(call.conversations.cancel(requiredText(call.params, "id")));
}

function list(call: Call): object {
  const { conversations, params } = call;
  const contextId = textField(params, "contextId");
  const state = stateField(params, "status");
  const pageSize = integerField(params, "pageSize", 1, 100) ?? 50;
  const after = timeField(params);
  const includesArtifacts = booleanField(params, "includeArtifacts") === true;
  const historyLength = integerField(params, "historyLength", 0) ?? 0;
  const token = textField(params, "pageToken");
  if (token !== undefined && !/^\d{1,15}$/.test(token)) throw wrongField("pageToken", "is not one that a list has returned");
  const found = conversations
    .list()
    .filter(
      (task) =>
        (contextId ?? task.contextId) === task.contextId && (state ?? task.status.state) === task.status.state && task.status.at >= after,
    );
  // A task that changes meanwhile moves to the front, so it is on no later page twice.
  const rest = token === undefined ? found : found.filter(({ order }) => order < Number(token));
  const page = rest.slice(0, pageSize);
  const last = page.at(-1);
  return {
    tasks: page.map((task) => writer.task(task, { historyLength, includesArtifacts })),
    nextPageToken: rest.length > page.length && last !== undefined ? String(last.order) : "",
    pageSize: page.length,
    totalSize: found.length,
  };
}

function timeField(params: Fields): number {
  const text = textField(params, "statusTimestampAfter");
  if (text === undefined) return Number.NEGATIVE_INFINITY;
  const time = /^\d{4}-\d{2}-\d{2}T/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) throw wrongField("statusTimestampAfter", "must be a time in ISO 8601");
  return time;
}

function configurationOf(params: Fields): Fields {
  const configuration = fieldsOf(field(params, "configuration") ?? {}, "configuration");
  const push = field(configuration, "taskPushNotificationConfig") ?? field(configuration, "pushNotificationConfig");
  if (push !== undefined) noPush();
  return configuration;
}

function noPush(): never {
  throw new A2aError("PUSH_NOTIFICATION_NOT_SUPPORTED", "Push notifications are not supported");
}

function noExtendedCard(): never {
  throw new A2aError("UNSUPPORTED_OPERATION", "There is no extended card");
}

const answer = (run: (call: Call) => object | Promise<object>): Operation => ({ kind: "answer", run });

/** The operations of A2A, by their names in version 1.0. */
export const operations = {
  SendMessage: answer(send),
  SendStreamingMessage: { kind: "stream", run: stream },
  GetTask: answer(get),
  ListTasks: answer(list),
  CancelTask: answer(cancel),
  SubscribeToTask: { kind: "stream", run: subscribe },
  CreateTaskPushNotificationConfig: answer(noPush),
  GetTaskPushNotificationConfig: answer(noPush),
  ListTaskPushNotificationConfigs: answer(noPush),
  DeleteTaskPushNotificationConfig: answer(noPush),
  GetExtendedAgentCard: answer(noExtendedCard),
} as const satisfies Record<string, Operation>;

export type OperationName = keyof typeof operations;

/** The names in version 0.3, which has no list of tasks. */
export const oldNames: Readonly<Record<string, OperationName>> = {
  "message/send": "SendMessage",
  "message/stream": "SendStreamingMessage",
  "tasks/get": "GetTask",
  "tasks/cancel": "CancelTask",
  "tasks/resubscribe": "SubscribeToTask",
  "tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig",
  "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
  "tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs",
  "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
  "agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
};

export function findOperation(name: string): Operation | undefined {
  return Object.hasOwn(operations, name) ? operations[name as OperationName] : undefined;
}
