import type { ToolSource } from "../mcp/tool-source.ts";
import { type AdapterOptions, modelTools, type ObjectSchema } from "./model-tool.ts";

/** What `tool` of `@openai/agents` is given. */
export interface AgentsToolOptions {
  name: string;
  description: string;
  parameters: ObjectSchema & { required: string[]; additionalProperties: true };
  strict: false;
  errorFunction: null;
  execute(input: unknown, context?: unknown, details?: { signal?: AbortSignal }): Promise<string>;
}

/**
 * An environment's tools for the OpenAI Agents SDK, which writes `_` for `-` in their names.
 *
 * @example
 * import { Agent, tool } from "@openai/agents";
 * const agent = new Agent({ name: "clerk", tools: await agentsTools(env, tool) });
 */
export async function agentsTools<Tool>(
  source: ToolSource,
  tool: (options: AgentsToolOptions) => Tool,
  options?: AdapterOptions,
): Promise<Tool[]> {
  const known = await modelTools(source, options);
  return known.map(({ name, description, parameters, call }) =>
    tool({
      name,
      description,
      // The SDK's type requires an open object with its required fields; at run time it passes any schema on unchanged.
      parameters: parameters as AgentsToolOptions["parameters"],
      strict: false,
      // An error of the platform ends the run. Passed to the model as a failed tool, it would change the reward.
      errorFunction: null,
      execute: (input, _context, details) => call(input, details?.signal),
    }),
  );
}
