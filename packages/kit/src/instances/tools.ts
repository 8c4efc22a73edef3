import { PlatformError } from "@aenv/contract";
import { type Blueprint, drawTools, type Toolset } from "../compile/environment.ts";
import type { ToolDefinition } from "../definition/definition.ts";

/** Lists that environments have named; with a thousand episodes of one kind there is still one. */
const drawn = new WeakMap<readonly ToolDefinition[], Promise<Toolset>>();

/** The tools of an episode that begins with this state. */
export async function toolsFor({ name, definition, tools }: Blueprint, state: unknown): Promise<Toolset> {
  if (definition.toolsOf === undefined) return tools;
  const own = definition.toolsOf(state);
  if (!Array.isArray(own)) throw new PlatformError("environment.invalid", `toolsOf of '${name}' must return a list of tools`);
  let toolset = drawn.get(own);
  if (toolset === undefined) {
    toolset = drawTools(own);
    drawn.set(own, toolset);
  }
  return toolset;
}
