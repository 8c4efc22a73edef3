import { z } from "zod";
import { checkAnswers, checkParameters, content, parseBody, textOf, toolName } from "./checks.ts";
import { ApiError } from "./error.ts";
import type { Conversation, Message, OfferedTool, Reply } from "./script.ts";
import { pieces } from "./stream.ts";

const message = z.looseObject({
  type: z.literal("message").optional(),
  role: z.enum(["system", "developer", "user", "assistant"]),
  content,
});
const functionCall = z.looseObject({
  type: z.literal("function_call"),
  call_id: z.string().min(1),
  name: toolName,
  arguments: z.string(),
});
const functionCallOutput = z.looseObject({ type: z.literal("function_call_output"), call_id: z.string().min(1), output: content });
const item = z.union([functionCall, functionCallOutput, message]);

const functionTool = z.looseObject({
  type: z.literal("function"),
  name: toolName,
  description: z.string().nullish(),
  parameters: z.record(z.string(), z.unknown()).nullable(),
  strict: z.boolean().nullish(),
});

const responsesRequest = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(item)]),
  instructions: z.string().nullish(),
  previous_response_id: z.string().nullish(),
  tools: z.array(functionTool).optional(),
  stream: z.boolean().nullish(),
});

/** A request of the Responses API, validated like the real one; `stored` has earlier conversations by id. */
export function parseResponses(body: Record<string, unknown>, stored: ReadonlyMap<string, readonly Message[]>): Conversation {
  const { model, input, instructions, previous_response_id: previous, tools = [], stream } = parseBody(responsesRequest, body);
  const offered = tools.map(({ name, description, parameters, strict }, index): OfferedTool => {
    const entry = { name, ...(description && { description }), ...(parameters && { parameters }) };
    checkParameters({ ...entry, strict: strict === true }, `tools[${index}].parameters`);
    // By default this API is strict, and rewrites a schema that does not fit instead of rejecting it.
    return { ...entry, strict: strict ?? true };
  });
  const messages = conversation(previous ?? null, stored);
  for (const given of typeof input === "string" ? [{ role: "user" as const, content: input }] : input) add(messages, given);
  checkAnswers(messages);
  const system: Message[] = instructions ? [{ role: "system", text: instructions }] : [];
  return { model, messages: [...system, ...messages], tools: offered, stream: stream === true };
}

function conversation(previous: string | null, stored: ReadonlyMap<string, readonly Message[]>): Message[] {
  if (previous === null) return [];
  const found = stored.get(previous);
  if (found === undefined) {
    throw new ApiError(400, `Previous response with id '${previous}' not found.`, { code: "previous_response_not_found" });
  }
  // Instructions belong to one request; they are not part of the stored conversation.
  return found.filter(({ role }) => role !== "system");
}

/** Consecutive items of the model are one assistant turn: the text and the calls between two inputs. */
function add(messages: Message[], given: z.infer<typeof item>): void {
  if (given.type === "function_call_output") {
    messages.push({ role: "tool", text: textOf(given.output), toolCallId: given.call_id });
    return;
  }
  if (given.type !== "function_call") {
    messages.push({ role: given.role, text: textOf(given.content) });
    return;
  }
  const call = { id: given.call_id, name: given.name, arguments: given.arguments };
  const last = messages.at(-1);
  if (last?.role !== "assistant") messages.push({ role: "assistant", text: "", toolCalls: [call] });
  else messages[messages.length - 1] = { ...last, toolCalls: [...(last.toolCalls ?? []), call] };
}

export function responseObject(reply: Reply) {
  return { ...shellOf(reply), status: "completed", output: itemsOf(reply), usage: usageOf(reply) };
}

/** The same response as the API's typed events. */
export function* responseEvents(reply: Reply): Generator<string> {
  let sequence = 0;
  const event = (type: string, fields: object) =>
    `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number: sequence++, ...fields })}`;

  const started = { ...shellOf(reply), status: "in_progress", output: [], usage: null };
  yield event("response.created", { response: started });
  yield event("response.in_progress", { response: started });
  for (const [output_index, whole] of itemsOf(reply).entries()) {
    const at = { item_id: whole.id, output_index };
    if (whole.type === "function_call") {
      yield event("response.output_item.added", { output_index, item: { ...whole, status: "in_progress", arguments: "" } });
      for (const delta of pieces(whole.arguments)) yield event("response.function_call_arguments.delta", { ...at, delta });
      yield event("response.function_call_arguments.done", { ...at, name: whole.name, arguments: whole.arguments });
    } else {
      const part = { ...at, content_index: 0 };
      yield event("response.output_item.added", { output_index, item: { ...whole, status: "in_progress", content: [] } });
      yield event("response.content_part.added", { ...part, part: textPart("") });
      for (const delta of pieces(reply.text)) yield event("response.output_text.delta", { ...part, delta, logprobs: [] });
      yield event("response.output_text.done", { ...part, text: reply.text, logprobs: [] });
      yield event("response.content_part.done", { ...part, part: textPart(reply.text) });
    }
    yield event("response.output_item.done", { output_index, item: whole });
  }
  yield event("response.completed", { response: responseObject(reply) });
}

function itemsOf({ serial, text, toolCalls }: Reply) {
  const said = { id: `msg_${serial}`, type: "message" as const, status: "completed", role: "assistant", content: [textPart(text)] };
  const called = toolCalls.map((call, position) => ({
    id: `fc_${serial}_${position}`,
    type: "function_call" as const,
    status: "completed",
    call_id: call.id,
    name: call.name,
    arguments: call.arguments,
  }));
  return text === "" && called.length > 0 ? called : [said, ...called];
}

function textPart(text: string) {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

function shellOf({ serial, model }: Reply) {
  return {
    id: `resp_${serial}`,
    object: "response",
    created_at: 0,
    model,
    error: null,
    incomplete_details: null,
    instructions: null,
    metadata: {},
    parallel_tool_calls: true,
    temperature: 1,
    top_p: 1,
    tool_choice: "auto",
    tools: [],
  };
}

function usageOf({ usage: { input, output } }: Reply) {
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: input + output,
  };
}
