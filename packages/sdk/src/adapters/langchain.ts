import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** Options of `DynamicStructuredTool` of `@langchain/core/tools`. */
export interface LangchainToolFields {
  name: string;
  description: string;
  schema: ObjectSchema;
  func(input: unknown, runManager?: unknown, config?: { signal?: AbortSignal }): Promise<string>;
}

/**
 * An environment's tools for LangChain and LangGraph. If the environment cannot be reached, an agent of `createAgent` passes the
 * error to the model and continues.
 *
 * @example
 * import { DynamicStructuredTool } from "@langchain/core/tools";
 * const agent = createAgent({ model, tools: await langchainTools(env, DynamicStructuredTool) });
 */
export async function langchainTools<Tool>(
  source: ToolSource,
  DynamicStructuredTool: new (fields: LangchainToolFields) => Tool,
  options?: AdapterOptions,
): Promise<Tool[]> {
  const known = await modelTools(source, options);
  return known.map(
    ({ name, description, parameters, call }) =>
      new DynamicStructuredTool({
        name,
        description,
        schema: parameters,
        func: (input, _runManager, config) => call(input, config?.signal),
      }),
  );
}
