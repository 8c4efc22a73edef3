import { type ContentBlock, isObject, type ToolDescriptor } from "@aenv/contract";
import type { ToolResult } from "../mcp/tool-result.ts";
import type { ToolSource } from "../mcp/tool-source.ts";
import { toolNames } from "./names.ts";

export interface AdapterOptions {
  /** Stands before each tool's name, for an agent that uses several environments: `{ prefix: "shop_" }`. */
  readonly prefix?: string;
}

/** A tool as a model uses it: under a name it accepts, and with text for an answer. */
export interface ModelTool {
  readonly name: string;
  readonly description: string;
  readonly parameters: ObjectSchema;
  /** What the tool says to the model, its failures too. Trouble of the platform is thrown: it is not the model's to handle. */
  call(args: unknown, signal?: AbortSignal | undefined): Promise<string>;
}

/**
 * A tool's input schema, as its environment gave it. What stands in `properties` is not looked at; `never` lets each
 * framework read it by its own type for schemas.
 */
export type ObjectSchema = {
  type: "object";
  properties: Record<string, never>;
};

/** The source's tools as models use them; each adapter only dresses these. */
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
      if (!isObject(args)) return failure(`the arguments must be a JSON object, not ${preview(JSON.stringify(args))}`);
      return modelText(await source.callTool(tool.name, args, signal === undefined ? {} : { signal }));
    },
  }));
}

/** Models refuse a schema that does not say that it is an object and what it holds; nothing else is added or changed. */
function objectSchema({ inputSchema }: ToolDescriptor): ObjectSchema {
  return { type: "object", properties: {}, ...inputSchema };
}

/** The arguments as the model wrote them; a text for the model where they are not JSON. Some models write nothing for none. */
export function parseArguments(
  text: string,
): { readonly ok: true; readonly args: unknown } | { readonly ok: false; readonly text: string } {
  if (text.trim() === "") return { ok: true, args: {} };
  try {
    return { ok: true, args: JSON.parse(text) };
  } catch {
    return { ok: false, text: failure(`the arguments are not valid JSON: ${preview(text)}`) };
  }
}

/** So that the model knows that the tool has failed, or was not called at all. */
export function failure(text: string): string {
  return `Error: ${text}`;
}

function modelText(result: ToolResult): string {
  const said = result.content.map(blockText).join("\n");
  const text = result.content.length === 0 && result.structuredContent !== undefined ? JSON.stringify(result.structuredContent) : said;
  return result.isError ? failure(text || "the tool failed and did not say why") : text;
}

function blockText(block: ContentBlock): string {
  const { type, text, data, mimeType, resource, uri } = block;
  if (type === "text" && typeof text === "string") return text;
  if (type === "resource" && isObject(resource) && typeof resource.text === "string") return resource.text;
  if (type === "resource_link" && typeof uri === "string") return uri;
  // Base64 in a text costs thousands of tokens and tells the model nothing.
  if (typeof data === "string") return `[${type} ${String(mimeType ?? "of unknown type")}, left out: this is text only]`;
  return JSON.stringify(block);
}

function preview(text: string | undefined): string {
  if (text === undefined) return "nothing";
  return text.length > 200 ? `${text.slice(0, 197)}...` : text;
}
