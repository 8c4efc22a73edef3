import { PlatformError } from "@aenv/contract";
import { type CompiledEnvironment, compileTools, type Toolset, withAgentTools } from "../compile/environment.ts";
import type { ToolDefinition } from "../definition/definition.ts";

/** Compiled lists, by the array that `toolsOf` returned; episodes that get the same array share the result. */
const compiled = new WeakMap<readonly ToolDefinition[], Promise<Toolset>>();

/** The tools of an episode that begins with this state. */
export async function toolsFor({ name, definition, tools }: CompiledEnvironment, state: unknown): Promise<Toolset> {
  if (definition.toolsOf === undefined) return tools;
  const own = definition.toolsOf(state);
  if (!Array.isArray(own)) throw new PlatformError("environment.invalid", `toolsOf of '${name}' must return an array of tools`);
  let toolset = compiled.get(own);
  if (toolset === undefined) {
    toolset = compileTools(withAgentTools(definition, own));
    compiled.set(own, toolset);
  }
  return toolset;
}
