import type { ToolSource } from "../tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** What `createTool` of `@mastra/core/tools` is given. */
export interface MastraToolOptions {
  id: string;
  description: string;
  inputSchema: ObjectSchema;
  execute(input: unknown, context?: { abortSignal?: AbortSignal }): Promise<string>;
}

/**
 * An environment's tools for Mastra.
 *
 * @example
 * import { createTool } from "@mastra/core/tools";
 * const agent = new Agent({ id: "clerk", name: "clerk", instructions, model, tools: await mastraTools(env, createTool) });
 */
export async function mastraTools<Tool>(
  source: ToolSource,
  createTool: (options: MastraToolOptions) => Tool,
  options?: AdapterOptions,
): Promise<Record<string, Tool>> {
  const known = await modelTools(source, options);
  return Object.fromEntries(
    known.map(({ name, description, parameters, call }) => [
      name,
      createTool({
        id: name,
        description,
        inputSchema: parameters,
        execute: (input, context) => call(input, context?.abortSignal),
      }),
    ]),
  );
}
