import * as z from "zod";
import { jsonSchemaObject } from "./json.ts";

/** A tool as MCP's `tools/list` describes it. */
export const toolDescriptor = z.looseObject({
  name: z.string(),
  title: z.string().optional(),
  description: z.string().optional(),
  inputSchema: jsonSchemaObject,
  outputSchema: jsonSchemaObject.optional(),
});
export type ToolDescriptor = z.infer<typeof toolDescriptor>;

/** One block of a tool's result: `{type:"text",text}`, `{type:"image",data,mimeType}` and so on. */
export const contentBlock = z.looseObject({ type: z.string() });
export type ContentBlock = z.infer<typeof contentBlock>;

/** MCP's `tools/call` result. */
export const callToolResult = z.looseObject({
  content: z.array(contentBlock),
  structuredContent: z.unknown().optional(),
  isError: z.boolean().optional(),
});
export type CallToolResult = z.infer<typeof callToolResult>;
