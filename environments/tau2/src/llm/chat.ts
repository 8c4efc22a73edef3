import { valueError } from "@aenv/benchmark";
import type { ChatMessage, CompletionRequest, ModelHandle } from "@aenv/kit";
import { isParticipant, isToolMessage, type Message, type ParticipantMessage } from "../core/messages/messages.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import { type ModelSettings, modelError, type SendOptions, send } from "./endpoint.ts";
import { fromWire, toWire } from "./wire.ts";

export type { ModelSettings } from "./endpoint.ts";

export interface ChatOptions extends SendOptions {
  readonly tools?: readonly JsonSchema[];
}

/** Requests the next message of a conversation from a model. The requestor of its calls is the assistant, even if it plays the user. */
export async function chat(settings: ModelSettings, messages: readonly Message[], options: ChatOptions = {}): Promise<ParticipantMessage> {
  const { tools = [] } = options;
  if (settings.declared !== undefined) return chatDeclared(settings, settings.declared, messages, options);
  const body = {
    model: settings.model,
    messages: messages.map(toWire),
    temperature: settings.temperature,
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
    ...(tools.length === 0 ? {} : { tools, tool_choice: "auto" }),
  };
  const text = await send(settings, JSON.stringify(body), options);
  const message = fromWire(text);
  if ("problem" in message) throw modelError(settings, message.problem, text);
  return message;
}

/** The same request, sent by the platform. */
async function chatDeclared(
  settings: ModelSettings,
  model: ModelHandle,
  messages: readonly Message[],
  { tools = [], signal }: ChatOptions,
): Promise<ParticipantMessage> {
  const { message } = await model.complete({
    messages: messages.map(toWire) as ChatMessage[],
    temperature: settings.temperature,
    ...(settings.seed === undefined ? {} : { seed: settings.seed }),
    ...(tools.length === 0 ? {} : { tools: tools.map(describe), toolChoice: "auto" as const }),
    signal,
  });
  const text = JSON.stringify({ choices: [{ message }] });
  const read = fromWire(text);
  if ("problem" in read) throw modelError(settings, read.problem, text);
  return read;
}

type ToolDescriptor = NonNullable<CompletionRequest["tools"]>[number];

function describe({ function: declared }: JsonSchema): ToolDescriptor {
  const { name, description, parameters } = declared as { name: string; description?: string; parameters: ToolDescriptor["inputSchema"] };
  return { name, ...(description === undefined ? {} : { description }), inputSchema: parameters };
}

/** A user's history for the model that plays the user: the user's messages become the assistant's, the agent's become the user's. */
export function flipRoles(history: readonly Message[]): Message[] {
  return history.map((message): Message => {
    if (isParticipant(message)) {
      if (message.role === "user") return { ...message, role: "assistant" };
      if (message.tool_calls !== null) throw valueError("Tool calls are not supported in the flipped messages");
      return { ...message, role: "user" };
    }
    if (isToolMessage(message) && message.requestor === "user") return message;
    throw valueError("Tool messages should be sent to the user in this message history");
  });
}
