import {
  type ChatMessage,
  isObject,
  isPlatformError,
  messageOf,
  parseBoundedJson,
  readBoundedText,
  type ToolDescriptor,
} from "@aenv/contract";
import type { Completion, CompletionRequest, ModelHandle } from "./model.ts";

const MAX_REQUEST_BYTES = 64 * 1_024 ** 2;

/**
 * A `fetch` for clients of OpenAI's chat completions, such as those of agent frameworks: whatever its address, a request goes to this
 * model. The client's key and model name are not used.
 *
 * @example
 * new OpenAI({ apiKey: "none", baseURL: "http://model/v1", fetch: modelFetch(context.model("main")) });
 */
export function modelFetch(model: ModelHandle): typeof fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    const { pathname } = new URL(request.url);
    if (request.method !== "POST" || !pathname.endsWith("/chat/completions"))
      return failure(404, `${request.method} ${pathname} is not possible here: only POST /chat/completions is`);
    try {
      const body = parseBoundedJson(await readBoundedText(request.body ?? new Blob([]).stream(), { maxBytes: MAX_REQUEST_BYTES }));
      if (!isObject(body)) return failure(400, "the body is no object");
      const completion = await model.complete({ ...requestOf(body), signal: request.signal });
      return body.stream === true ? streamed(model.name, completion) : Response.json(completionOf(model.name, completion));
    } catch (error) {
      request.signal.throwIfAborted();
      const isRetryable = isPlatformError(error) && error.retryable;
      return failure(502, messageOf(error), { "x-should-retry": String(isRetryable) });
    }
  };
}

function failure(status: number, message: string, headers: Record<string, string> = { "x-should-retry": "false" }): Response {
  return Response.json({ error: { message, type: "model_failed", param: null, code: null } }, { status, headers });
}

/** What a handle knows of a request. Other settings are those of the model's declaration. */
function requestOf(body: Readonly<Record<string, unknown>>): Omit<CompletionRequest, "signal"> {
  const { messages, tools, tool_choice: choice, temperature, seed, response_format: format } = body;
  const limit = body.max_completion_tokens ?? body.max_tokens;
  const toolChoice = choiceOf(choice);
  const responseFormat = formatOf(format);
  return {
    messages: Array.isArray(messages) ? (messages as ChatMessage[]) : [],
    tools: Array.isArray(tools) ? tools.flatMap(toolOf) : [],
    ...(toolChoice !== undefined && { toolChoice }),
    ...(typeof temperature === "number" && { temperature }),
    ...(typeof limit === "number" && { maxTokens: limit }),
    ...(typeof seed === "number" && { seed }),
    ...(responseFormat !== undefined && { responseFormat }),
  };
}

function toolOf(tool: unknown): ToolDescriptor[] {
  const called = isObject(tool) ? tool.function : undefined;
  if (!isObject(called) || typeof called.name !== "string") return [];
  const { name, description, parameters } = called;
  return [
    {
      name,
      ...(typeof description === "string" && { description }),
      inputSchema: isObject(parameters) ? parameters : { type: "object" },
    } as ToolDescriptor,
  ];
}

function choiceOf(choice: unknown): CompletionRequest["toolChoice"] {
  if (choice === "auto" || choice === "none" || choice === "required") return choice;
  const named = isObject(choice) && isObject(choice.function) ? choice.function.name : undefined;
  return typeof named === "string" ? { name: named } : undefined;
}

function formatOf(format: unknown): CompletionRequest["responseFormat"] {
  if (!isObject(format)) return undefined;
  if (format.type === "json_object") return { type: "json_object" };
  const wanted = format.type === "json_schema" && isObject(format.json_schema) ? format.json_schema : null;
  if (wanted === null || !isObject(wanted.schema)) return undefined;
  return { type: "json_schema", name: String(wanted.name ?? "answer"), schema: wanted.schema };
}

function headOf(name: string, object: string): Record<string, unknown> {
  return { id: `chatcmpl-${crypto.randomUUID()}`, object, created: Math.floor(Date.now() / 1_000), model: name };
}

function completionOf(name: string, { message, finishReason, usage }: Completion): Record<string, unknown> {
  return {
    ...headOf(name, "chat.completion"),
    choices: [{ index: 0, message: { refusal: null, ...message }, finish_reason: finishReason ?? "stop", logprobs: null }],
    usage: usageOf(usage),
  };
}

function usageOf({ promptTokens, completionTokens }: Completion["usage"]): Record<string, unknown> {
  const [prompt, completion] = [promptTokens ?? 0, completionTokens ?? 0];
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

/** The whole answer as the events of a stream. */
function streamed(name: string, { message, finishReason, usage }: Completion): Response {
  const head = headOf(name, "chat.completion.chunk");
  const delta = { ...message, ...(message.tool_calls && { tool_calls: message.tool_calls.map((call, index) => ({ index, ...call })) }) };
  const events = [
    { ...head, choices: [{ index: 0, delta, finish_reason: null }] },
    { ...head, choices: [{ index: 0, delta: {}, finish_reason: finishReason ?? "stop" }] },
    { ...head, choices: [], usage: usageOf(usage) },
  ];
  const text = [...events.map((event) => JSON.stringify(event)), "[DONE]"].map((data) => `data: ${data}\n\n`).join("");
  return new Response(text, { headers: { "content-type": "text/event-stream" } });
}
