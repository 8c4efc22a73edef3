import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** Options of `dynamicTool` of `ai`; `Schema` is the result of its `jsonSchema`. */
export interface AiToolOptions<Schema> {
  description: string;
  inputSchema: Schema;
  execute(input: unknown, options: { abortSignal?: AbortSignal }): Promise<string>;
}

/** The two functions of `ai` that create a tool whose schema is known only at run time. */
export interface AiFactory<Schema, Tool> {
  dynamicTool(options: AiToolOptions<Schema>): Tool;
  jsonSchema(schema: ObjectSchema): Schema;
}

/**
 * An environment's tools for the Vercel AI SDK. If the environment cannot be reached, the AI SDK passes the error to the model and continues.
 *
 * @example
 * import { dynamicTool, generateText, isStepCount, jsonSchema } from "ai";
 * const tools = await aiTools(env, { dynamicTool, jsonSchema });
 * const { text } = await generateText({ model, prompt, tools, stopWhen: isStepCount(20) });
 */
export async function aiTools<Schema, Tool>(
  source: ToolSource,
  { dynamicTool, jsonSchema }: AiFactory<Schema, Tool>,
  options?: AdapterOptions,
): Promise<Record<string, Tool>> {
  const known = await modelTools(source, options);
  return Object.fromEntries(
    known.map(({ name, description, parameters, call }) => [
      name,
      dynamicTool({
        description,
        inputSchema: jsonSchema(parameters),
        execute: (input, { abortSignal }) => call(input, abortSignal),
      }),
    ]),
  );
}
