import { z } from "zod";
import { checkAnswers, checkParameters, content, parseBody, textOf, toolName } from "./checks.ts";
import type { Conversation, Message, OfferedTool, Reply } from "./script.ts";
import { pieces } from "./stream.ts";

const toolCall = z.looseObject({
  id: z.string().min(1),
  type: z.literal("function"),
  function: z.looseObject({ name: toolName, arguments: z.string() }),
});

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.enum(["system", "developer", "user"]), content }),
  z.looseObject({ role: z.literal("assistant"), content: content.nullish(), tool_calls: z.array(toolCall).min(1).optional() }),
  z.looseObject({ role: z.literal("tool"), content, tool_call_id: z.string() }),
]);

const tool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: toolName,
    description: z.string().optional(),
    parameters: z.record(z.string(), z.unknown()).optional(),
    strict: z.boolean().nullish(),
  }),
});

const chatRequest = z.looseObject({
  model: z.string().min(1),
  messages: z.array(message).min(1),
  tools: z.array(tool).min(1).optional(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
});

/** A request for a chat completion, validated like the real API. */
export function parseChat(body: Record<string, unknown>): Conversation {
  const { model, messages, tools = [], stream } = parseBody(chatRequest, body);
  const offered = tools.map((entry): OfferedTool => {
    const { name, description, parameters, strict } = entry.function;
    return { name, ...(description && { description }), ...(parameters && { parameters }), ...(strict && { strict }) };
  });
  offered.forEach((entry, index) => {
    checkParameters(entry, `tools[${index}].function.parameters`);
  });
  const said = messages.map(messageOf);
  checkAnswers(said);
  return { model, messages: said, tools: offered, stream: stream === true };
}

function messageOf(given: z.infer<typeof message>): Message {
  const text = textOf(given.content);
  if (given.role === "tool") return { role: "tool", text, toolCallId: given.tool_call_id };
  if (given.role !== "assistant" || given.tool_calls === undefined) return { role: given.role, text };
  const toolCalls = given.tool_calls.map((call) => ({ id: call.id, name: call.function.name, arguments: call.function.arguments }));
  return { role: "assistant", text, toolCalls };
}

export function chatCompletion(
  reply: Reply,
  fields: { readonly completion: object; readonly choice: object } = { completion: {}, choice: {} },
) {
  const { text, toolCalls } = reply;
  const calls = toolCalls.map((call) => ({ id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }));
  return {
    ...headOf(reply, "chat.completion"),
    choices: [
      {
        index: 0,
        finish_reason: finishOf(reply),
        logprobs: null,
        message: { role: "assistant", content: text === "" ? null : text, refusal: null, ...(calls.length > 0 && { tool_calls: calls }) },
        ...fields.choice,
      },
    ],
    usage: usageOf(reply),
    ...fields.completion,
  };
}

/** The same response as server-sent events, in pieces small enough that clients must join them. */
export function* chatChunks(reply: Reply, body: Record<string, unknown>): Generator<string> {
  const { stream_options } = parseBody(chatRequest, body);
  const head = headOf(reply, "chat.completion.chunk");
  const chunk = (delta: object, finish_reason: string | null = null) =>
    `data: ${JSON.stringify({ ...head, choices: [{ index: 0, delta, logprobs: null, finish_reason }] })}`;

  yield chunk({ role: "assistant", content: reply.text === "" ? null : "" });
  for (const piece of pieces(reply.text)) yield chunk({ content: piece });
  for (const [index, { id, name, arguments: args }] of reply.toolCalls.entries()) {
    yield chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: "" } }] });
    for (const piece of pieces(args)) yield chunk({ tool_calls: [{ index, function: { arguments: piece } }] });
  }
  yield chunk({}, finishOf(reply));
  if (stream_options?.include_usage === true) yield `data: ${JSON.stringify({ ...head, choices: [], usage: usageOf(reply) })}`;
  yield "data: [DONE]";
}

function headOf({ serial, model }: Reply, object: string) {
  return { id: `chatcmpl-${serial}`, object, created: 0, model };
}

function finishOf({ toolCalls }: Reply): string {
  return toolCalls.length > 0 ? "tool_calls" : "stop";
}

function usageOf({ usage: { input, output } }: Reply) {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}
