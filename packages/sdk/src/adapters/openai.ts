import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, failure, type ModelTool, modelTools, type ObjectSchema, parseArguments } from "./model-tool.ts";

/** A tool in the list that chat completions take. */
export interface ChatTool {
  type: "function";
  function: { name: string; description: string; parameters: ObjectSchema };
}

/** A tool call in an assistant's message. */
export interface ChatToolCall {
  readonly id: string;
  readonly function?: { readonly name: string; readonly arguments: string };
}

/** The message with the result of a tool call. */
export interface ChatToolMessage {
  role: "tool";
  tool_call_id: string;
  content: string;
}

export interface ChatToolset {
  /** Goes into the request as `tools`. */
  readonly tools: ChatTool[];
  /** Runs one tool call and returns the message with its result. */
  run(call: ChatToolCall, options?: RunOptions): Promise<ChatToolMessage>;
}

/** A tool in the list that the Responses API takes. */
export interface ResponsesTool {
  type: "function";
  name: string;
  description: string;
  parameters: ObjectSchema;
  strict: false;
}

/** A `function_call` item of a response. */
export interface ResponsesToolCall {
  readonly call_id: string;
  readonly name: string;
  readonly arguments: string;
}

/** The item with the result of a `function_call`. */
export interface ResponsesToolOutput {
  type: "function_call_output";
  call_id: string;
  output: string;
}

export interface ResponsesToolset {
  /** Goes into the request as `tools`. */
  readonly tools: ResponsesTool[];
  /** Runs one `function_call` and returns the item with its result. */
  run(call: ResponsesToolCall, options?: RunOptions): Promise<ResponsesToolOutput>;
}

export interface RunOptions {
  readonly signal?: AbortSignal | undefined;
}

/**
 * An environment's tools for chat completions, of OpenAI or of any compatible server.
 *
 * @example
 * const { tools, run } = await chatTools(env);
 * const { choices: [{ message }] } = await openai.chat.completions.create({ model, messages, tools });
 * messages.push(message);
 * for (const call of message.tool_calls ?? []) messages.push(await run(call));
 */
export async function chatTools(source: ToolSource, options?: AdapterOptions): Promise<ChatToolset> {
  const known = await modelTools(source, options);
  return {
    tools: known.map(({ name, description, parameters }) => ({ type: "function", function: { name, description, parameters } })),
    async run({ id, function: called }, { signal } = {}) {
      const content = called === undefined ? failure("only function tools can be called") : await runTool(known, called, signal);
      return { role: "tool", tool_call_id: id, content };
    },
  };
}

/**
 * An environment's tools for the Responses API. They are never strict: strict mode rejects or rewrites schemas with
 * optional fields and defaults, and the environment validates the arguments anyway.
 *
 * @example
 * const { tools, run } = await responsesTools(env);
 * const response = await openai.responses.create({ model, input, tools });
 * for (const item of response.output) {
 *   input.push(item);
 *   if (item.type === "function_call") input.push(await run(item));
 * }
 */
export async function responsesTools(source: ToolSource, options?: AdapterOptions): Promise<ResponsesToolset> {
  const known = await modelTools(source, options);
  return {
    tools: known.map(({ name, description, parameters }) => ({ type: "function", name, description, parameters, strict: false })),
    async run(call, { signal } = {}) {
      return { type: "function_call_output", call_id: call.call_id, output: await runTool(known, call, signal) };
    },
  };
}

/** A wrong name or wrong arguments are an error message for the model, so that it can correct the call. */
async function runTool(known: readonly ModelTool[], call: { name: string; arguments: string }, signal?: AbortSignal): Promise<string> {
  const tool = known.find(({ name }) => name === call.name);
  if (tool === undefined) return failure(`there is no tool '${call.name}'; there are: ${known.map(({ name }) => name).join(", ")}`);
  const parsed = parseArguments(call.arguments);
  return parsed.ok ? await tool.call(parsed.value, signal) : failure(parsed.message);
}
