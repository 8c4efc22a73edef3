import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** What `createTool` of `@mastra/core/tools` is given. */
export interface MastraToolOptions {
  id: string;
  description: string;
  inputSchema: PassingSchema;
  execute(input: unknown, context?: { abortSignal?: AbortSignal }): Promise<string>;
}

/** A Standard Schema that describes itself as the environment does and lets everything pass: the environment checks. */
export interface PassingSchema {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => { readonly value: unknown };
    readonly jsonSchema: { readonly input: () => ObjectSchema; readonly output: () => ObjectSchema };
  };
}

/**
 * An environment's tools for Mastra. When the environment cannot be reached, Mastra tells the model and goes on.
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

// A plain JSON Schema would reach the model with its open objects closed; a Standard Schema reaches it as it is.
function passing(schema: ObjectSchema): PassingSchema {
  const describe = () => schema;
  return {
    "~standard": { version: 1, vendor: "aenv", validate: (value) => ({ value }), jsonSchema: { input: describe, output: describe } },
  };
}
