import { type AgentCard, type Part, Role, TaskState } from "@a2a-js/sdk";
import {
  AgentEvent,
  DefaultRequestHandler,
  type ExecutionEventBus,
  InMemoryTaskStore,
  JsonRpcTransportHandler,
  type RequestContext,
  ServerCallContext,
} from "@a2a-js/sdk/server";

const text = (value: string): Part => ({ content: { $case: "text", value }, mediaType: "", filename: "", metadata: undefined });
const data: Part = { content: { $case: "data", value: { key: "value", count: 42 } }, mediaType: "", filename: "", metadata: undefined };
const file: Part = {
  content: { $case: "raw", value: Buffer.from("file") },
  mediaType: "text/plain",
  filename: "output.txt",
  metadata: undefined,
};

/** What the conformance agent of the kit does, for the official SDK. */
async function execute({ taskId, contextId, userMessage, task }: RequestContext, bus: ExecutionEventBus): Promise<void> {
  const { messageId } = userMessage;
  const message = (words: string, id = taskId) => ({
    messageId: crypto.randomUUID(),
    role: Role.ROLE_AGENT,
    parts: [text(words)],
    contextId,
    taskId: id,
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  });
  const status = (state: TaskState, words?: string) => ({
    state,
    message: words === undefined ? undefined : message(words),
    timestamp: new Date().toISOString(),
  });
  const update = (state: TaskState, words?: string) =>
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(state, words), metadata: undefined }));
  const artifact = (part: Part) =>
    bus.publish(
      AgentEvent.artifactUpdate({
        taskId,
        contextId,
        artifact: { artifactId: "artifact-1", name: "result", description: "", parts: [part], metadata: undefined, extensions: [] },
        append: false,
        lastChunk: false,
        metadata: undefined,
      }),
    );
  if (messageId.startsWith("tck-message-response")) {
    bus.publish(AgentEvent.message(message("A direct answer.", "")));
    return bus.finished();
  }
  if (task === undefined)
    bus.publish(
      AgentEvent.task({
        id: taskId,
        contextId,
        status: status(TaskState.TASK_STATE_SUBMITTED),
        artifacts: [],
        history: [userMessage],
        metadata: undefined,
      }),
    );
  update(TaskState.TASK_STATE_WORKING);
  if (messageId.startsWith("tck-input-required")) update(TaskState.TASK_STATE_INPUT_REQUIRED, "What next?");
  else if (messageId.startsWith("tck-reject-task")) update(TaskState.TASK_STATE_REJECTED, "No.");
  else if (messageId.startsWith("tck-complete-task")) update(TaskState.TASK_STATE_COMPLETED, "Done.");
  else {
    if (messageId.startsWith("tck-artifact-data")) artifact(data);
    if (messageId.startsWith("tck-artifact-file")) artifact(file);
    if (messageId.startsWith("tck-artifact-text")) artifact(text("Generated text."));
    if (messageId.startsWith("tck-stream-001")) artifact(text("Streamed text."));
    update(TaskState.TASK_STATE_COMPLETED);
  }
  bus.finished();
}

/** Answers a request as the server of the official SDK does; a stream as the list of its events. */
export function openSdkServer(card: unknown): (body: Record<string, unknown>) => Promise<unknown[]> {
  const executor = { execute, cancelTask: async () => {} };
  const handler = new JsonRpcTransportHandler(new DefaultRequestHandler(card as AgentCard, new InMemoryTaskStore(), executor));
  return async (body) => {
    const answer = await handler.handle(body, new ServerCallContext({ requestedVersion: "1.0" }));
    if (!(Symbol.asyncIterator in answer)) return [answer];
    const events: unknown[] = [];
    try {
      for await (const event of answer) events.push(event);
    } catch (error) {
      // As its handlers of HTTP do.
      events.push({ jsonrpc: "2.0", id: body.id, error: JsonRpcTransportHandler.mapToJSONRPCError(error) });
    }
    return events;
  };
}
