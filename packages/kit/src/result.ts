import { type CallToolResult, type ContentBlock, isObject } from "@aenv/contract";
import { type Checked, type CompiledSchema, check } from "./schema.ts";

/** A tool's output schema as clients see it; what is not an object is wrapped as `{"result": …}`. */
export interface OutputShape {
  readonly schema: CompiledSchema;
  readonly advertised: Readonly<Record<string, unknown>>;
  readonly isWrapped: boolean;
}

/** The mark by which the original's clients know that a result was wrapped. */
const WRAPPED = "x-fastmcp-wrap-result";

export function outputShape(schema: CompiledSchema): OutputShape {
  const isWrapped = schema.output.type !== "object";
  const { $schema, ...inner } = schema.output;
  const advertised = isWrapped
    ? { ...($schema !== undefined && { $schema }), type: "object", properties: { result: inner }, required: ["result"], [WRAPPED]: true }
    : schema.output;
  return { schema, advertised, isWrapped };
}

/** What a tool returned, as MCP carries it: text for the model, and structured content where there is some. */
export function toToolResult(value: unknown, output: OutputShape | null, toolName: string): CallToolResult | Promise<CallToolResult> {
  if (isToolResult(value)) return value;
  if (output === null) return plainResult(value);
  const checked = check(output.schema, value);
  return checked instanceof Promise
    ? checked.then((done) => shapedResult(done, output, toolName))
    : shapedResult(checked, output, toolName);
}

/** A failure as the agent sees it: the message, never the stack. */
export function toolFailure(message: string): CallToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}

function plainResult(value: unknown): CallToolResult {
  if (value === undefined || value === null) return { content: [] };
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  if (isContentBlock(value)) return { content: [value] };
  if (Array.isArray(value) && value.length > 0 && value.every(isContentBlock)) return { content: value };
  const text = JSON.stringify(value);
  if (text === undefined) return { content: [] };
  const content = [{ type: "text", text }];
  // Parsed back, so that what travels as structure is what the text says: dates as strings, no undefined.
  return isObject(value) ? { content, structuredContent: JSON.parse(text) } : { content };
}

function shapedResult(checked: Checked, output: OutputShape, toolName: string): CallToolResult {
  if (!checked.ok) return toolFailure(`Output validation error: Invalid structured content for tool ${toolName}: ${checked.problem}`);
  const text = typeof checked.value === "string" ? checked.value : (JSON.stringify(checked.value) ?? "null");
  const structured = JSON.parse(JSON.stringify(checked.value) ?? "null");
  return { content: [{ type: "text", text }], structuredContent: output.isWrapped ? { result: structured } : structured };
}

function isToolResult(value: unknown): value is CallToolResult {
  if (!isObject(value) || !Array.isArray(value.content) || !value.content.every(isContentBlock)) return false;
  if (value.isError !== undefined && typeof value.isError !== "boolean") return false;
  if (value.structuredContent !== undefined && !isObject(value.structuredContent)) return false;
  return Object.keys(value).every((key) => key === "content" || key === "isError" || key === "structuredContent");
}

/** Only what MCP's own schema would accept passes as a block; the rest is data and becomes text. */
function isContentBlock(value: unknown): value is ContentBlock {
  if (!isObject(value)) return false;
  switch (value.type) {
    case "text":
      return typeof value.text === "string";
    case "image":
    case "audio":
      return typeof value.data === "string" && typeof value.mimeType === "string";
    case "resource_link":
      return typeof value.uri === "string" && typeof value.name === "string";
    case "resource":
      return (
        isObject(value.resource) &&
        typeof value.resource.uri === "string" &&
        (typeof value.resource.text === "string" || typeof value.resource.blob === "string")
      );
    default:
      return false;
  }
}
