import { type ChatMessage, type Conversation, isObject, parseBoundedJson, type ToolChoice, textOf } from "@aenv/contract";
import { parseArguments } from "@aenv/sdk/adapters";
import * as z from "zod";
import { withNotation } from "../../player/arguments.ts";
import {
  chatContent,
  type Dialect,
  type ModelMessage,
  offeredTools,
  parametersOf,
  readAnswer,
  reported,
  type TurnRequest,
  tokenDetails,
  tokenLimit,
} from "../dialect.ts";
import { MessagesStream } from "./stream.ts";

/** Anthropic's Messages API. */
export const messagesDialect: Dialect = {
  api: "messages",
  path: "/messages",
  headers: (apiKey) => ({ "x-api-key": apiKey, "anthropic-version": "2023-06-01" }),
  body,
  parse,
  read,
  conversationOf,
  openStream: () => new MessagesStream(),
};

/** The content blocks of an assistant message, kept so that the endpoint sees its own thinking and signatures again. */
const BLOCKS = "anthropic_content";
const DEFAULT_MAX_TOKENS = 4_096;

type Block = Record<string, unknown>;
interface Turn {
  readonly role: "user" | "assistant";
  readonly content: Block[];
}

function body(request: TurnRequest): Record<string, unknown> {
  const { model, messages, tools, sampling, streams, toolChoice, responseFormat } = request;
  const system = messages.filter(({ role }) => role === "system" || role === "developer").map(textOf);
  return {
    model,
    ...(system.length > 0 && { system: system.join("\n\n") }),
    messages: turnsOf(messages),
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({ name: tool.name, description: tool.description ?? "", input_schema: parametersOf(tool) })),
    }),
    ...(toolChoice !== undefined && { tool_choice: choiceOf(toolChoice) }),
    ...(responseFormat?.type === "json_schema" && {
      output_config: { format: { type: "json_schema", schema: responseFormat.schema } },
    }),
    ...sampling,
    max_tokens: tokenLimit(request, "max_tokens") ?? DEFAULT_MAX_TOKENS,
    ...(streams && { stream: true }),
  };
}

function choiceOf(choice: ToolChoice): Record<string, unknown> {
  if (typeof choice !== "string") return { type: "tool", name: choice.name };
  return { type: choice === "required" ? "any" : choice };
}

/** The conversation with user and assistant in turn, as the API demands: neighbours of one role become one message. */
function turnsOf(messages: readonly ChatMessage[]): Turn[] {
  const turns: Turn[] = [];
  for (const message of messages) {
    if (message.role === "system" || message.role === "developer") continue;
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = turns.at(-1);
    if (last?.role === role) last.content.push(...blocksOf(message));
    else turns.push({ role, content: blocksOf(message) });
  }
  return turns;
}

function blocksOf(message: ChatMessage): Block[] {
  const { role, tool_calls = [], tool_call_id } = message;
  const text = textOf(message);
  if (role === "tool")
    return [{ type: "tool_result", tool_use_id: tool_call_id, content: text, ...(text.startsWith("Error: ") && { is_error: true }) }];
  const kept = message[BLOCKS];
  if (Array.isArray(kept)) return kept as Block[];
  const calls = tool_calls.map(({ id, function: { name, arguments: args } }) => {
    const parsed = parseArguments(args);
    return { type: "tool_use", id, name, input: parsed.ok ? parsed.value : {} };
  });
  return [...(text === "" && calls.length > 0 ? [] : [{ type: "text", text }]), ...calls];
}

const message = z.looseObject({
  id: z.string().nullish(),
  content: z.array(z.looseObject({ type: z.string() })),
  stop_reason: z.string().nullish(),
  usage: z
    .looseObject({
      input_tokens: z.number().nullish(),
      output_tokens: z.number().nullish(),
      cache_read_input_tokens: z.number().nullish(),
      cache_creation_input_tokens: z.number().nullish(),
    })
    .nullish(),
});

const FINISH: Readonly<Record<string, string>> = { end_turn: "stop", stop_sequence: "stop", tool_use: "tool_calls", max_tokens: "length" };

/** The inputs of tool calls are values in this API, not texts; their numbers keep the notation of the model. */
function parse(text: string): unknown {
  const answer = parseBoundedJson(text);
  const exact = withNotation(text);
  return isObject(answer) && exact !== null ? { ...answer, content: exact.content } : answer;
}

function read(answer: unknown): ModelMessage {
  const checked = readAnswer(message, answer, "a message", isObject(answer) ? [answer.content] : []);
  const { id, model, content, stop_reason, usage } = checked;
  return {
    message: messageOf(content),
    turn: {
      completion_id: id ?? null,
      finish_reason: FINISH[stop_reason ?? ""] ?? stop_reason ?? null,
      ...reported(model),
      prompt_token_ids: null,
      completion_token_ids: null,
      logprobs: null,
      weight_versions: [],
      prompt_tokens: promptTokens(usage),
      completion_tokens: usage?.output_tokens ?? null,
      ...tokenDetails(usage?.cache_read_input_tokens, null),
    },
  };
}

/** The API counts cached tokens apart; a prompt holds both. */
function promptTokens(usage: z.infer<typeof message>["usage"]): number | null {
  if (usage?.input_tokens === null || usage?.input_tokens === undefined) return null;
  return usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
}

/** The content blocks of one turn as one message. */
function messageOf(content: readonly Block[]): ChatMessage {
  const calls = content.flatMap(({ type, id, name, input }) =>
    type === "tool_use"
      ? [
          {
            id: String(id),
            type: "function" as const,
            function: { name: String(name), arguments: JSON.stringify(isObject(input) ? input : {}) },
          },
        ]
      : [],
  );
  const thinking = content
    .flatMap((block) => (block.type === "thinking" && typeof block.thinking === "string" ? [block.thinking] : []))
    .join("\n");
  return {
    role: "assistant",
    content: content.flatMap((block) => (block.type === "text" && typeof block.text === "string" ? [block.text] : [])).join(""),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(thinking !== "" && { reasoning_content: thinking }),
    [BLOCKS]: content.map((block) => ("input" in block ? { ...block, input: JSON.parse(JSON.stringify(block.input)) } : block)),
  };
}

function conversationOf({ system, messages, tools }: Readonly<Record<string, unknown>>): Conversation | null {
  if (!Array.isArray(messages)) return null;
  const instructions = chatContent(system, ["text"]);
  const seen: ChatMessage[] = instructions === "" ? [] : [{ role: "system", content: instructions }];
  for (const one of messages) {
    if (!isObject(one)) return null;
    const blocks = typeof one.content === "string" ? [{ type: "text", text: one.content }] : one.content;
    if (!Array.isArray(blocks)) return null;
    seen.push(...(one.role === "assistant" ? [messageOf(blocks.filter(isObject))] : givenMessages(blocks.filter(isObject))));
  }
  return { messages: seen, tools: offeredTools(tools, "input_schema") };
}

/** A user's message of this API holds the results of tools too, before the words. */
function givenMessages(blocks: readonly Block[]): ChatMessage[] {
  const results = blocks.filter(({ type }) => type === "tool_result");
  const words = blocks.filter(({ type }) => type !== "tool_result");
  return [
    ...results.map(
      ({ tool_use_id, content }): ChatMessage => ({
        role: "tool",
        tool_call_id: String(tool_use_id),
        content: chatContent(content, ["text"]),
      }),
    ),
    ...(words.length > 0 ? [{ role: "user" as const, content: chatContent(words, ["text"]) }] : []),
  ];
}
