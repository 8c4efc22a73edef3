import { messageOf, PlatformError } from "@aenv/contract";
import { type Blueprint, drawTools, type Toolset } from "./blueprint.ts";
import type { ToolDefinition } from "./definition.ts";

/** Lists that environments have named; with a thousand episodes of one kind there is still one. */
const drawn = new WeakMap<readonly ToolDefinition[], Promise<Toolset>>();

/** The tools of an episode that begins with this state. */
export async function toolsFor({ name, definition, tools }: Blueprint, state: unknown): Promise<Toolset> {
  if (definition.toolsOf === undefined) return tools;
  let own: readonly ToolDefinition[];
  try {
    own = definition.toolsOf(state);
  } catch (error) {
    throw new PlatformError("instance.setup_failed", `toolsOf of '${name}' failed: ${messageOf(error)}`, { cause: error });
  }
  if (!Array.isArray(own)) throw new PlatformError("environment.invalid", `toolsOf of '${name}' must return a list of tools`);
  let toolset = drawn.get(own);
  if (toolset === undefined) {
    toolset = drawTools(own);
    drawn.set(own, toolset);
  }
  return toolset;
}
