import { isObject, type Scored, type SessionStep, type ToolDescriptor } from "@aenv/contract";

type Fields = Readonly<Record<string, unknown>>;

/** The answer to a reset and to a step. */
export interface Result {
  readonly observation: Fields & { readonly metadata: Fields };
  readonly reward: number | null;
  readonly done: boolean;
  readonly metadata: Fields;
}

export type ToolErrorType = "execution_error" | "invalid_args" | "tool_not_found" | "timeout";

export interface ToolFailure {
  readonly type: ToolErrorType;
  readonly message: string;
}

/** Older clients read the metadata inside the observation, newer ones beside it. */
export function resultOf(
  observation: Fields,
  { reward = null, done = false, metadata = {} }: Partial<Omit<Result, "observation">> = {},
): Result {
  return { observation: { ...observation, metadata }, reward, done, metadata };
}

/** A list of tools, with both spellings of the schema: clients differ. */
export function toolList(tools: readonly ToolDescriptor[]): readonly Fields[] {
  return tools.map(({ name, description = "", inputSchema }) => ({ name, description, input_schema: inputSchema, inputSchema }));
}

export function failedTool(name: string, { type, message }: ToolFailure): Fields {
  return { tool_name: name, result: null, error: { error_type: type, message } };
}

export function toolResult(
  name: string,
  { content, structured_content: structured, observation }: Pick<SessionStep, "content" | "structured_content" | "observation">,
): Fields {
  const result = { content, structured_content: structured ?? null, meta: null, data: dataOf(structured, observation), is_error: false };
  return { tool_name: name, result, error: null };
}

/** A value of the platform's own tools. */
export function valueResult(name: string, value: unknown): Fields {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return toolResult(name, {
    content: [{ type: "text", text }],
    structured_content: isObject(value) ? value : { result: value },
    observation: text,
  });
}

/** What a failed tool call is called in this protocol. */
export function failureOf(content: SessionStep["content"]): ToolFailure {
  const message = content.map(({ text }) => (typeof text === "string" ? text : "")).join("\n");
  const type = message.startsWith("Input validation error") ? "invalid_args" : /timed out/i.test(message) ? "timeout" : "execution_error";
  return { type, message };
}

export function rewardsOf({ reward, components }: Scored): Fields {
  return { total: reward, components };
}

/** The structured value, without the wrapper of a plain one; the text if there is none. */
function dataOf(structured: unknown, text: string): unknown {
  if (structured === undefined || structured === null) return text;
  const isWrapped = isObject(structured) && Object.keys(structured).length === 1 && "result" in structured;
  return isWrapped ? structured.result : structured;
}
