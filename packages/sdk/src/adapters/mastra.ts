import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** Options of `createTool` of `@mastra/core/tools`. */
export interface MastraToolOptions {
  id: string;
  description: string;
  inputSchema: PassingSchema;
  execute(input: unknown, context?: { abortSignal?: AbortSignal }): Promise<string>;
}

/** A Standard Schema with the environment's JSON Schema that accepts every value: the environment validates. */
export interface PassingSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: { readonly input: () => ObjectSchema; readonly output: () => ObjectSchema };
  };
}

/**
 * An environment's tools for Mastra. If the environment cannot be reached, Mastra passes the error to the model and continues.
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
        inputSchema: passing(parameters),
        execute: (input, context) => call(input, context?.abortSignal),
      }),
    ]),
  );
}

// Mastra changes a plain JSON Schema (it closes open objects), but passes a Standard Schema on unchanged.
function passing(schema: ObjectSchema): PassingSchema {
  const describe = () => schema;
  return {
    "~standard": { version: 1, vendor: "aenv", validate: (value) => ({ value }), jsonSchema: { input: describe, output: describe } },
  };
}
