import * as z from "zod";
import type { Part } from "../definition/agent.ts";
import { type ToolContext, type ToolDefinition, tool } from "../definition/definition.ts";
import type { Conversations, Sent } from "./conversations.ts";
import { type ConversationTask, isRunning, partsText, taskStates } from "./task.ts";

/** Where the context of a tool has the conversations of its episode: only the tools below read them. */
export const CONVERSATIONS = Symbol("conversations");

export type ConversationContext = ToolContext<unknown> & { readonly [CONVERSATIONS]: () => Conversations };

/** The conversation of callers that name none: `chat`, and what `reply` says. */
const MAIN = "main";

const info = { mediaType: z.string().optional(), filename: z.string().optional() };
/** JSON has no other values. */
const json = z.unknown().refine((value) => value !== undefined);
const parts = z.array(
  z.union([
    z.object({ text: z.string(), ...info }),
    z.object({ raw: z.base64(), ...info }),
    z.object({ url: z.string(), ...info }),
    z.object({ data: json, ...info }),
  ]),
);

const chat = tool({
  name: "chat",
  description: "Says something to the agent and returns its answer. All calls are one conversation.",
  input: z.object({ message: z.string() }),
  run: ({ message }, context: ToolContext<unknown>) => sayToAgent(message, context),
});

const sendMessage = tool({
  name: "send_message",
  description: "Sends a message to the agent: in a new conversation, in one that is named, or for a task that needs input.",
  input: z.object({
    message: z.string().optional().describe("Its text."),
    parts: parts.optional().describe("Its parts, instead of a text."),
    context_id: z.string().min(1).max(256).optional().describe("The conversation; a new one by default."),
    task_id: z.string().optional().describe("The task that the message continues."),
    wait: z.boolean().default(true).describe("Whether to wait until the agent has answered."),
  }),
  run: async ({ message, parts: given, context_id: contextId, task_id: taskId, wait }, context: ToolContext<unknown>) => {
    const sentParts = given ?? (message === undefined ? [] : [{ text: message }]);
    if (sentParts.length === 0) throw new Error("send_message needs 'message' or 'parts'");
    const conversations = conversationsOf(context);
    const sent = await conversations.send({ messageId: "tool", parts: sentParts as Part[], contextId, taskId });
    if (sent.kind === "task" && wait) await conversations.settled(sent.task.id, context.signal);
    return sentSummary(sent);
  },
});

const getTask = tool({
  name: "get_task",
  description: "Returns a task: its state, its artifacts, and the messages so far.",
  input: z.object({
    task_id: z.string(),
    history_length: z.int().min(0).optional().describe("How many of the last messages; all by default."),
  }),
  annotations: { readOnlyHint: true },
  run: ({ task_id, history_length: wanted }, context: ToolContext<unknown>) => {
    const task = conversationsOf(context).get(task_id);
    const history = wanted === undefined ? task.history : wanted === 0 ? [] : task.history.slice(-wanted);
    return { ...summaryOf(task), history: history.map(({ role, parts: said }) => ({ role, text: partsText(said) })) };
  },
});

const listTasks = tool({
  name: "list_tasks",
  description: "Lists the tasks, the one that changed last first.",
  input: z.object({ context_id: z.string().optional(), state: z.enum(taskStates).optional() }),
  annotations: { readOnlyHint: true },
  run: ({ context_id, state }, context: ToolContext<unknown>) => {
    const chosen = conversationsOf(context)
      .list()
      .filter((task) => (context_id ?? task.contextId) === task.contextId && (state ?? task.status.state) === task.status.state);
    return { tasks: chosen.map(({ id, contextId, status }) => ({ task_id: id, context_id: contextId, state: status.state })) };
  },
});

const cancelTask = tool({
  name: "cancel_task",
  description: "Cancels a task that has not ended.",
  input: z.object({ task_id: z.string() }),
  run: ({ task_id }, context: ToolContext<unknown>) => summaryOf(conversationsOf(context).cancel(task_id)),
});

/** The tools by which other agents talk to the agent of an environment. */
export const agentTools: readonly ToolDefinition[] = [chat, sendMessage, getTask, listTasks, cancelTask] as unknown as ToolDefinition[];

const agentToolNames: ReadonlySet<string> = new Set(agentTools.map(({ name }) => name));

/** Whether a tool talks to the agent, so that the agent itself must not have it. */
export function isAgentTool(name: string): boolean {
  return agentToolNames.has(name);
}

/** One turn in the main conversation, or in its task that waits for an answer. A turn that fails is an exception. */
export async function sayToAgent(text: string, context: ToolContext<unknown>): Promise<string> {
  const conversations = conversationsOf(context);
  const waiting = conversations.waitingIn(MAIN);
  const sent = await conversations.send({ messageId: "tool", parts: [{ text }], contextId: MAIN, taskId: waiting?.id });
  if (sent.kind === "message") return partsText(sent.message.parts);
  const { id } = sent.task;
  try {
    await conversations.settled(id, context.signal);
  } catch (error) {
    // Nobody would read the answer.
    if (isRunning(conversations.get(id).status.state)) conversations.cancel(id);
    throw error;
  }
  const { state, message } = conversations.get(id).status;
  const said = partsText(message?.parts ?? []);
  if (state === "failed") throw conversations.failureOf(id) ?? new Error(said);
  if (state === "rejected") throw new Error(`the agent refuses: ${said}`);
  if (state === "canceled") throw new Error("the task was cancelled");
  return said === "" ? textsOfArtifacts(conversations.get(id)) : said;
}

function conversationsOf(context: ToolContext<unknown>): Conversations {
  return (context as ConversationContext)[CONVERSATIONS]();
}

function sentSummary(sent: Sent): object {
  if (sent.kind === "task") return summaryOf(sent.task);
  const { contextId, parts: said } = sent.message;
  return { task_id: null, context_id: contextId, state: "completed", reply: partsText(said), artifacts: [] };
}

/** A task that has failed has an error and no reply. */
function summaryOf({ id, contextId, status, artifacts }: ConversationTask): object {
  const said = status.message === null ? null : partsText(status.message.parts);
  const hasFailed = status.state === "failed";
  return {
    task_id: id,
    context_id: contextId,
    state: status.state,
    reply: hasFailed ? null : said,
    ...(hasFailed && { error: said }),
    artifacts: artifacts.map(({ artifactId, name, parts: made }) => ({
      artifact_id: artifactId,
      ...(name !== undefined && { name }),
      parts: made,
    })),
  };
}

function textsOfArtifacts({ artifacts }: ConversationTask): string {
  return artifacts.map(({ parts: made }) => partsText(made)).join("\n");
}
