import { type CallToolResult, type ChatMessage, isObject, messageOf, parseBoundedJson, textOf } from "@aenv/contract";
import type { AgentContext, AgentPart, AgentTools, Part } from "../definition/agent.ts";

export interface ChatAgentOptions {
  /** The model's name in `deployConfig.models`. */
  readonly model: string;
  /** What the model is told before the conversation. */
  readonly instructions?: string;
  /** Calls of the model in one turn; 20 by default. A turn that needs more fails. */
  readonly maxTurns?: number;
  /** The names of the environment's tools that it has; all by default. */
  readonly tools?: readonly string[];
  readonly temperature?: number;
  /** Tokens of one answer of the model. */
  readonly maxTokens?: number;
}

/** The conversation as the model sees it, without the instructions. */
export interface ChatMemory {
  messages: ChatMessage[];
}

const MAX_TURNS = 20;

/**
 * An agent that is a chat model with the tools of its environment. Its memory is the conversation, so forks are exact.
 *
 * @example
 * agentEnvironment({ agent: chatAgent({ model: "main", instructions: "You answer questions about orders." }), tools });
 */
export function chatAgent({
  model,
  instructions,
  maxTurns = MAX_TURNS,
  tools: names,
  ...settings
}: ChatAgentOptions): AgentPart<ChatMemory> {
  const system: ChatMessage[] = instructions === undefined ? [] : [{ role: "system", content: instructions }];
  return {
    begin: () => ({ messages: [] }),
    async *turn(input, memory, context) {
      const handle = context.model(model);
      const tools = context.tools.list().filter(({ name }) => names?.includes(name) ?? true);
      memory.messages.push({ role: "user", content: contentOf(input) });
      for (let turns = 0; turns < maxTurns; turns++) {
        const { message } = await handle.complete({ messages: [...system, ...memory.messages], tools, ...settings });
        memory.messages.push(message);
        const calls = message.tool_calls ?? [];
        if (calls.length === 0) {
          yield { kind: "answer", parts: [{ text: textOf(message) }] };
          return;
        }
        for (const { id, function: called } of calls)
          memory.messages.push({ role: "tool", tool_call_id: id, content: await resultOf(context, tools, called) });
      }
      throw new Error(`the agent has called its model ${maxTurns} times without an answer; raise maxTurns, or give it fewer things to do`);
    },
  };
}

type ChatContent = Exclude<ChatMessage["content"], null | undefined>;

/** The parts of a message as the model reads them: a text, or texts and images. */
function contentOf(parts: readonly Part[]): ChatContent {
  const content = parts.map((part) => {
    if ("text" in part) return { type: "text", text: part.text };
    if ("data" in part) return { type: "text", text: JSON.stringify(part.data) };
    const { mediaType = "application/octet-stream" } = part;
    const url = "url" in part ? part.url : `data:${mediaType};base64,${part.raw}`;
    if (mediaType.startsWith("image/")) return { type: "image_url", image_url: { url } };
    return { type: "text", text: "url" in part ? part.url : `(a file: ${part.filename ?? mediaType})` };
  });
  return content.every(({ type }) => type === "text") ? content.map(({ text }) => text).join("\n") : content;
}

/** What the model reads of a tool call. A call that the model wrote wrongly is for the model to correct. */
async function resultOf(
  { tools, signal }: AgentContext,
  offered: ReturnType<AgentTools["list"]>,
  called: { readonly name: string; readonly arguments: string },
): Promise<string> {
  signal.throwIfAborted();
  if (!offered.some(({ name }) => name === called.name))
    return `Error: there is no tool '${called.name}'; there are ${offered.map(({ name }) => name).join(", ") || "none"}`;
  let input: unknown;
  try {
    input = called.arguments.trim() === "" ? {} : parseBoundedJson(called.arguments);
  } catch (error) {
    return `Error: the arguments are no JSON: ${messageOf(error)}`;
  }
  return shown(await tools.call(called.name, input));
}

function shown({ content, isError, structuredContent }: CallToolResult): string {
  const texts = content.map((block) => (block.type === "text" && typeof block.text === "string" ? block.text : `(${block.type})`));
  const text = texts.length === 0 && isObject(structuredContent) ? JSON.stringify(structuredContent) : texts.join("\n");
  return isError === true ? `Error: ${text}` : text;
}
