import { type Conversation, chatMessage, parseBoundedJson, type ResponseFormat } from "@aenv/contract";
import * as z from "zod";
import { type Dialect, offeredTools, parametersOf, type TurnRequest, tokenLimit } from "../dialect.ts";
import { readCompletion } from "./completion.ts";
import { ChatStream } from "./stream.ts";

/**
 * How vLLM and SGLang are asked for token ids and log-probabilities. `top_logprobs` must be 0 and not null: some versions of vLLM return
 * no log-probabilities otherwise.
 */
export const TOKEN_FIELDS = { return_token_ids: true, logprobs: true, top_logprobs: 0 } as const;

/** OpenAI's chat completions, which vLLM, SGLang and most others speak. */
export const chatDialect: Dialect = {
  api: "chat",
  path: "/chat/completions",
  headers: (apiKey) => ({ authorization: `Bearer ${apiKey}` }),
  body,
  parse: (text) => parseBoundedJson(text),
  read: readCompletion,
  conversationOf,
  openStream: () => new ChatStream(),
};

function body(request: TurnRequest): Record<string, unknown> {
  const { model, messages, tools, seed, sampling, streams, wantsTokens, toolChoice, responseFormat } = request;
  const limit = tokenLimit(request, "max_tokens");
  return {
    model,
    messages,
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({
        type: "function",
        function: { name: tool.name, description: tool.description ?? "", parameters: parametersOf(tool) },
      })),
    }),
    ...(toolChoice !== undefined && {
      tool_choice: typeof toolChoice === "string" ? toolChoice : { type: "function", function: { name: toolChoice.name } },
    }),
    ...(responseFormat !== undefined && { response_format: formatOf(responseFormat) }),
    ...(seed !== undefined && { seed }),
    ...sampling,
    ...(limit !== undefined && { max_tokens: limit }),
    ...(wantsTokens && TOKEN_FIELDS),
    ...(streams && { stream: true, stream_options: { include_usage: true } }),
  };
}

function formatOf(format: ResponseFormat): Record<string, unknown> {
  if (format.type === "json_object") return format;
  const { type, name, schema } = format;
  return { type, json_schema: { name, schema, strict: true } };
}

function conversationOf({ messages, tools }: Readonly<Record<string, unknown>>): Conversation | null {
  const parsed = z.array(chatMessage).safeParse(messages);
  return parsed.success ? { messages: parsed.data, tools: offeredTools(tools, "parameters") } : null;
}
