import { type CallToolResult, isObject, type Json } from "@aenv/contract";
import { readBlock, readBlocks } from "../json/content-block.ts";
import { toJson } from "../json/to-json.ts";
import { type Checked, type CompiledSchema, check } from "./schema.ts";

const RESULT = "the tool's result";
const STRUCTURE = "the tool's structuredContent";

/** A tool's output schema as it is advertised to clients; a type other than object is wrapped as `{"result": …}`. */
export interface OutputShape {
  readonly schema: CompiledSchema;
  readonly advertised: Readonly<Record<string, unknown>>;
  readonly isWrapped: boolean;
}

/** The extension field by which the original's clients recognize a wrapped result. */
const WRAPPED = "x-fastmcp-wrap-result";

export function outputShape(schema: CompiledSchema): OutputShape {
  const isWrapped = schema.output.type !== "object";
  const { $schema, ...inner } = schema.output;
  const advertised = isWrapped
    ? { ...($schema !== undefined && { $schema }), type: "object", properties: { result: inner }, required: ["result"], [WRAPPED]: true }
    : schema.output;
  return { schema, advertised, isWrapped };
}

/** Converts what a tool returned to an MCP result: text for the model, and structured content if there is some. */
export function toToolResult(value: unknown, output: OutputShape | null, toolName: string): CallToolResult | Promise<CallToolResult> {
  const whole = readToolResult(value);
  if (output === null) return whole ?? plainResult(value);
  if (whole?.isError === true) return whole;
  const given = whole === null ? value : structureOf(whole, output);
  if (given === undefined && whole !== null) {
    return toolFailure(`Output validation error: Tool ${toolName} has an output schema but no structured content was provided`);
  }
  const checked = check(output.schema, given);
  return checked instanceof Promise
    ? checked.then((done) => shapedResult(done, output, toolName, whole))
    : shapedResult(checked, output, toolName, whole);
}

/** A failed call as the agent gets it: the message, never the stack. */
export function toolFailure(message: string): CallToolResult {
  return { content: [{ type: "text", text: message }], isError: true };
}

function plainResult(value: unknown): CallToolResult {
  if (value === undefined || value === null) return { content: [] };
  if (typeof value === "string") return { content: [{ type: "text", text: value }] };
  const block = readBlock(value);
  if (block !== null) return { content: [block] };
  const blocks = Array.isArray(value) && value.length > 0 ? readBlocks(value) : null;
  if (blocks !== null) return { content: blocks };
  // A copy, so that text and structure agree even if the environment changes the value later.
  const plain = toJson(value, RESULT);
  const content = [{ type: "text", text: textOf(plain) }];
  return isObject(plain) ? { content, structuredContent: withoutProto(plain) } : { content };
}

function textOf(plain: Json): string {
  return typeof plain === "string" ? plain : JSON.stringify(plain);
}

/** A complete result keeps its author's blocks; only its structure is replaced by the checked value. */
function shapedResult(checked: Checked, output: OutputShape, toolName: string, whole: CallToolResult | null): CallToolResult {
  if (!checked.ok) return toolFailure(`Output validation error: Invalid structured content for tool ${toolName}: ${checked.problem}`);
  const plain = toJson(checked.value, RESULT);
  const structuredContent = output.isWrapped ? { result: plain } : isObject(plain) ? withoutProto(plain) : plain;
  return { content: whole?.content ?? [{ type: "text", text: textOf(plain) }], structuredContent };
}

function structureOf({ structuredContent }: CallToolResult, output: OutputShape): unknown {
  return output.isWrapped && isObject(structuredContent) ? structuredContent.result : structuredContent;
}

/** The value if it is a complete `tools/call` result without unknown fields; else null. */
function readToolResult(value: unknown): CallToolResult | null {
  if (!isObject(value) || !Array.isArray(value.content)) return null;
  const { content, isError, structuredContent, ...rest } = value;
  if (Object.keys(rest).length > 0) return null;
  if (isError !== undefined && typeof isError !== "boolean") return null;
  if (structuredContent !== undefined && !isObject(structuredContent)) return null;
  const blocks = readBlocks(content);
  if (blocks === null) return null;
  const failed = isError === undefined ? {} : { isError };
  if (structuredContent === undefined) return { content: blocks, ...failed };
  const structure = toJson(structuredContent, STRUCTURE);
  return isObject(structure) ? { content: blocks, structuredContent: withoutProto(structure), ...failed } : null;
}

/** A client that copies such a key by assignment would change a prototype. */
function withoutProto(structure: Record<string, unknown>): Record<string, unknown> {
  if (!Object.hasOwn(structure, "__proto__")) return structure;
  return Object.fromEntries(Object.entries(structure).filter(([key]) => key !== "__proto__"));
}
