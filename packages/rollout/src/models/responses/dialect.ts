import { type ChatMessage, type Conversation, isObject, parseBoundedJson, textOf } from "@aenv/contract";
import * as z from "zod";
import { ModelError } from "../../player/failure.ts";
import {
  chatContent,
  type Dialect,
  type ModelMessage,
  offeredTools,
  parametersOf,
  readAnswer,
  reported,
  type StreamReader,
  type TurnRequest,
  tokenDetails,
  tokenLimit,
} from "../dialect.ts";

/** OpenAI's Responses API. The whole conversation is sent each time; nothing is stored at the endpoint. */
export const responsesDialect: Dialect = {
  api: "responses",
  path: "/responses",
  headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  body,
  parse: (text) => parseBoundedJson(text),
  read,
  conversationOf,
  openStream: () => new ResponsesStream(),
};

/** The output items of an assistant message, kept so that the endpoint sees its own reasoning again. */
const ITEMS = "responses_output";

function body(request: TurnRequest): Record<string, unknown> {
  const { model, messages, tools, sampling, streams, toolChoice, responseFormat } = request;
  const limit = tokenLimit(request, "max_output_tokens");
  return {
    model,
    input: messages.flatMap(toItems),
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({
        type: "function",
        name: tool.name,
        description: tool.description ?? "",
        parameters: parametersOf(tool),
        strict: false,
      })),
    }),
    ...(toolChoice !== undefined && {
      tool_choice: typeof toolChoice === "string" ? toolChoice : { type: "function", name: toolChoice.name },
    }),
    ...(responseFormat !== undefined && {
      text: { format: responseFormat.type === "json_object" ? responseFormat : { ...responseFormat, strict: true } },
    }),
    store: false,
    include: ["reasoning.encrypted_content"],
    ...sampling,
    ...(limit !== undefined && { max_output_tokens: limit }),
    ...(streams && { stream: true }),
  };
}

function toItems(message: ChatMessage): unknown[] {
  const { role, tool_calls = [], tool_call_id } = message;
  if (role === "tool") return [{ type: "function_call_output", call_id: tool_call_id, output: textOf(message) }];
  const kept = message[ITEMS];
  if (role === "assistant" && Array.isArray(kept)) return kept;
  const text = textOf(message);
  const calls = tool_calls.map(({ id, function: { name, arguments: args } }) => ({
    type: "function_call",
    call_id: id,
    name,
    arguments: args,
  }));
  return [...(text === "" && calls.length > 0 ? [] : [{ role, content: text }]), ...calls];
}

const response = z.looseObject({
  id: z.string().nullish(),
  status: z.string().nullish(),
  error: z.looseObject({ message: z.string() }).nullish(),
  incomplete_details: z.looseObject({ reason: z.string() }).nullish(),
  output: z.array(z.looseObject({ type: z.string() })),
  usage: z
    .looseObject({
      input_tokens: z.number().nullish(),
      output_tokens: z.number().nullish(),
      input_tokens_details: z.looseObject({ cached_tokens: z.number().nullish() }).nullish(),
      output_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullish() }).nullish(),
    })
    .nullish(),
});

function read(answer: unknown): ModelMessage {
  const checked = readAnswer(response, answer, "a response", isObject(answer) ? [answer.output] : []);
  const { id, model, temperature, top_p, max_output_tokens, status, error, incomplete_details: incomplete, output, usage } = checked;
  if (status === "failed")
    throw new ModelError(`the model's response failed: ${error?.message ?? "no reason was given"}`, { retryable: true });
  const message = messageOf(output);
  return {
    message,
    turn: {
      completion_id: id ?? null,
      finish_reason: message.tool_calls !== undefined ? "tool_calls" : incomplete?.reason === "max_output_tokens" ? "length" : "stop",
      ...reported(model, { temperature, top_p, max_output_tokens }),
      prompt_token_ids: null,
      completion_token_ids: null,
      logprobs: null,
      weight_versions: [],
      prompt_tokens: usage?.input_tokens ?? null,
      completion_tokens: usage?.output_tokens ?? null,
      ...tokenDetails(usage?.input_tokens_details?.cached_tokens, usage?.output_tokens_details?.reasoning_tokens),
    },
  };
}

type Item = Readonly<Record<string, unknown>>;

/** The output items of one turn as one message. */
function messageOf(output: readonly Item[]): ChatMessage {
  const calls = output.flatMap(({ type, call_id, name, arguments: args }) =>
    type === "function_call"
      ? [{ id: String(call_id), type: "function" as const, function: { name: String(name), arguments: String(args) } }]
      : [],
  );
  const reasoning = output.flatMap((item) => (item.type === "reasoning" ? partsOf(item.summary, "summary_text") : [])).join("\n");
  return {
    role: "assistant",
    content: output.flatMap((item) => (isSpeech(item) ? [textOf({ content: chatContent(item.content, TEXTS) })] : [])).join(""),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    [ITEMS]: output,
  };
}

const TEXTS = ["input_text", "output_text", "text"];

/** An item that says something. Items of a conversation may leave their type out. */
function isSpeech({ type, role }: Item): boolean {
  return type === "message" || (type === undefined && typeof role === "string");
}

function conversationOf({ instructions, input, tools }: Readonly<Record<string, unknown>>): Conversation | null {
  if (typeof input !== "string" && !Array.isArray(input)) return null;
  const messages: ChatMessage[] = typeof instructions === "string" ? [{ role: "system", content: instructions }] : [];
  const items: Item[] = typeof input === "string" ? [{ role: "user", content: input }] : input.filter(isObject);
  let written: Item[] = [];
  for (const item of items) {
    const seen = seenMessage(item);
    if (seen === null) {
      written.push(item);
      continue;
    }
    if (written.length > 0) messages.push(messageOf(written));
    written = [];
    messages.push(seen);
  }
  if (written.length > 0) messages.push(messageOf(written));
  return { messages, tools: offeredTools(tools, "parameters") };
}

/** An item that the model was given; null for one that it wrote itself, such as a function call. */
function seenMessage(item: Item): ChatMessage | null {
  const { type, role, call_id, output, content } = item;
  if (typeof type === "string" && type.endsWith("_call_output"))
    return { role: "tool", tool_call_id: String(call_id), content: chatContent(output, TEXTS) };
  if (!isSpeech(item) || role === "assistant") return null;
  return { role: role === "system" || role === "developer" ? role : "user", content: chatContent(content, TEXTS) };
}

function partsOf(parts: unknown, type: string): string[] {
  if (!Array.isArray(parts)) return [];
  return parts.flatMap((part) => (isObject(part) && part.type === type && typeof part.text === "string" ? [part.text] : []));
}

/** The last event of a stream holds the whole response. */
class ResponsesStream implements StreamReader {
  #answer: unknown = null;

  add({ type, response: whole, message }: Record<string, unknown>): void {
    if (type === "response.completed" || type === "response.incomplete" || type === "response.failed") this.#answer = whole;
    if (type === "error") throw new ModelError(`the model's stream ended with an error: ${String(message)}`, { retryable: true });
  }

  get answer(): unknown {
    return this.#answer;
  }
}
