import { type ContentBlock, isObject, parseBoundedJson, ReadLimitExceeded, type ToolDescriptor } from "@aenv/contract";
import type { ToolResult } from "../mcp/tool-result.ts";
import type { ToolSource } from "../mcp/tool-source.ts";
import { toolNames } from "./names.ts";

export interface AdapterOptions {
  /** Prefix of each tool's name, for an agent that uses several environments: `{ prefix: "shop_" }`. */
  readonly prefix?: string;
}

/** A tool for a model: with a valid name, and with text as its result. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: ObjectSchema;
  /** The tool's result as text, also if the tool failed. Errors of the platform are thrown, because the model cannot handle them. */
  call(args: unknown, signal?: AbortSignal | undefined): Promise<string>;
}

/**
 * A tool's input schema, unchanged from its environment. `properties` are not inspected; their type `never` is assignable to each
 * framework's own type for schemas.
 */
export type ObjectSchema = {
  type: "object";
  properties: Record<string, never>;
};

/** The source's tools for models; each adapter converts these to its framework's format. */
export async function modelTools(source: ToolSource, options: AdapterOptions = {}): Promise<ModelTool[]> {
  const tools = await source.listTools();
  const names = toolNames(
    tools.map((tool) => tool.name),
    options,
  );
  return tools.map((tool) => ({
    name: names.forModel(tool.name),
    description: tool.description ?? "",
    parameters: objectSchema(tool),
    async call(args, signal) {
      if (!isObject(args)) return failure(noObject(args));
      return modelText(await source.callTool(tool.name, args, signal === undefined ? {} : { signal }));
    },
  }));
}

/** Adds `type` and `properties` if they are missing, because models reject a schema without them. */
function objectSchema({ inputSchema }: ToolDescriptor): ObjectSchema {
  return { type: "object", properties: {}, ...inputSchema };
}

/** The arguments of a tool call as a model wrote them, or what is wrong with them. Some models send an empty text for no arguments. */
export function parseArguments(
  text: string,
): { readonly ok: true; readonly value: Record<string, unknown> } | { readonly ok: false; readonly message: string } {
  if (text.trim() === "") return { ok: true, value: {} };
  try {
    const value = parseBoundedJson(text);
    return isObject(value) ? { ok: true, value } : { ok: false, message: noObject(value) };
  } catch (error) {
    if (error instanceof ReadLimitExceeded) return { ok: false, message: `the arguments are too large: ${error.message}` };
    return { ok: false, message: `the arguments are not valid JSON: ${preview(text)}` };
  }
}

function noObject(args: unknown): string {
  return `the arguments must be a JSON object, not ${preview(JSON.stringify(args))}`;
}

/** Marks a text for the model as an error: the tool failed, or was not called. */
export function failure(text: string): string {
  return `Error: ${text}`;
}

/** The result of a tool as a model reads it. */
export function modelText(result: Pick<ToolResult, "content" | "structuredContent" | "isError">): string {
  const blocks = result.content.map(blockText).join("\n");
  const text = result.content.length === 0 && result.structuredContent !== undefined ? JSON.stringify(result.structuredContent) : blocks;
  return result.isError ? failure(text || "the tool failed without a message") : text;
}

function blockText(block: ContentBlock): string {
  const { type, text, data, mimeType, resource, uri } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && isObject(resource) && typeof resource.text === "string") return resource.text;
  if (type === "resource_link" && typeof uri === "string") return uri;
  // Base64 in a text costs thousands of tokens and is useless to the model.
  if (typeof data === "string") return `[${type} ${String(mimeType ?? "of unknown type")}, left out: this is text only]`;
  return JSON.stringify(block);
}

function preview(text: string | undefined): string {
  if (text === undefined) return "nothing";
  return text.length > 200 ? `${text.slice(0, 197)}...` : text;
}
