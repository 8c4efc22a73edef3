import { z } from "zod";
import { checkAnswers, checkParameters, content, parseBody, textOf, toolName } from "./checks.ts";
import { ApiError } from "./error.ts";
import type { Conversation, Message, OfferedTool, Reply } from "./script.ts";
import { pieces } from "./stream.ts";

const block = z.discriminatedUnion("type", [
  z.looseObject({ type: z.literal("text"), text: z.string().min(1) }),
  z.looseObject({ type: z.literal("tool_use"), id: z.string().min(1), name: toolName, input: z.record(z.string(), z.unknown()) }),
  z.looseObject({ type: z.literal("tool_result"), tool_use_id: z.string().min(1), content: content.optional() }),
]);

const tool = z.looseObject({
  name: toolName,
  description: z.string().optional(),
  input_schema: z.record(z.string(), z.unknown()),
});

const messagesRequest = z.looseObject({
  model: z.string().min(1),
  max_tokens: z.number().int().positive(),
  system: content.optional(),
  messages: z.array(z.looseObject({ role: z.enum(["user", "assistant"]), content: z.union([z.string(), z.array(block).min(1)]) })).min(1),
  tools: z.array(tool).optional(),
  stream: z.boolean().optional(),
});

/** A request for a message of Anthropic's API, validated like the real one. */
export function parseMessages(body: Record<string, unknown>): Conversation {
  const { model, system, messages, tools = [], stream } = parseBody(messagesRequest, body);
  if (messages[0]?.role !== "user") throw new ApiError(400, "messages: the first message must be of the user", { param: "messages" });
  const offered = tools.map(
    ({ name, description, input_schema: parameters }): OfferedTool => ({ name, parameters, ...(description && { description }) }),
  );
  offered.forEach((entry, index) => {
    checkParameters(entry, `tools[${index}].input_schema`);
  });
  const said = messages.flatMap(messagesOf);
  checkAnswers(said);
  const instructions: Message[] = system === undefined ? [] : [{ role: "system", text: textOf(system) }];
  return { model, messages: [...instructions, ...said], tools: offered, stream: stream === true };
}

/** The results of tools are blocks of a user's message, before its text; here each is a message of its own. */
function messagesOf({ role, content: given }: z.infer<typeof messagesRequest>["messages"][number]): Message[] {
  if (typeof given === "string") return [{ role, text: given }];
  const results = given.flatMap((one): Message[] =>
    one.type === "tool_result" ? [{ role: "tool", toolCallId: one.tool_use_id, text: textOf(one.content) }] : [],
  );
  const text = given.flatMap((one) => (one.type === "text" ? [one.text] : [])).join("");
  const toolCalls = given.flatMap((one) =>
    one.type === "tool_use" ? [{ id: one.id, name: one.name, arguments: JSON.stringify(one.input) }] : [],
  );
  if (results.length > 0 && text === "") return results;
  return [...results, { role, text, ...(toolCalls.length > 0 && { toolCalls }) }];
}

export function messageObject(reply: Reply) {
  const { text, toolCalls } = reply;
  return {
    ...headOf(reply),
    content: [
      ...(text === "" ? [] : [{ type: "text", text }]),
      ...toolCalls.map(({ id, name, arguments: args }) => ({ type: "tool_use", id, name, input: inputOf(args) })),
    ],
    stop_reason: stopOf(reply),
    usage: { input_tokens: reply.usage.input, output_tokens: reply.usage.output },
  };
}

/** The same message as server-sent events, in pieces small enough that clients must join them. */
export function* messageEvents(reply: Reply): Generator<string> {
  const { text, toolCalls, usage } = reply;
  const event = (type: string, fields: object) => `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}`;
  const start = { ...headOf(reply), content: [], stop_reason: null, usage: { input_tokens: usage.input, output_tokens: 1 } };
  yield event("message_start", { message: start });
  let index = 0;
  function* blockEvents(content_block: object, deltas: readonly object[]): Generator<string> {
    yield event("content_block_start", { index, content_block });
    for (const delta of deltas) yield event("content_block_delta", { index, delta });
    yield event("content_block_stop", { index: index++ });
  }
  if (text !== "")
    yield* blockEvents(
      { type: "text", text: "" },
      pieces(text).map((piece) => ({ type: "text_delta", text: piece })),
    );
  yield event("ping", {});
  for (const { id, name, arguments: args } of toolCalls) {
    const deltas = pieces(args).map((piece) => ({ type: "input_json_delta", partial_json: piece }));
    yield* blockEvents({ type: "tool_use", id, name, input: {} }, deltas);
  }
  yield event("message_delta", { delta: { stop_reason: stopOf(reply), stop_sequence: null }, usage: { output_tokens: usage.output } });
  yield event("message_stop", {});
}

function headOf({ serial, model }: Reply) {
  return { id: `msg_${serial}`, type: "message", role: "assistant", model, stop_sequence: null };
}

function stopOf({ toolCalls }: Reply): string {
  return toolCalls.length > 0 ? "tool_use" : "end_turn";
}

/** The API has no way to send arguments that are not an object. */
function inputOf(args: string): unknown {
  const input: unknown = JSON.parse(args);
  if (typeof input !== "object" || input === null || Array.isArray(input)) {
    throw new ApiError(400, `the script failed: the Messages API cannot send the arguments ${args}`, { code: "script_failed" });
  }
  return input;
}
