import { PlatformError } from "@aenv/contract";
import { type CompiledEnvironment, checkToolsOfRoles, compileTools, type Toolset, withAgentTools } from "../compile/environment.ts";
import { WAIT_TOOL } from "../compile/roles.ts";
import type { ToolDefinition } from "../definition/definition.ts";

/** The tools of an episode: of its agent, or of each role. */
export interface EpisodeTools {
  readonly tools: Toolset;
  readonly roleTools: ReadonlyMap<string, Toolset>;
}

const NONE: Toolset = new Map();

/** Compiled lists, by the array that `toolsOf` returned; episodes that get the same array share the result. */
const compiled = new WeakMap<readonly ToolDefinition[], Promise<Toolset>>();
/** The tools of a role with those of the platform, by the former. */
const completed = new WeakMap<Toolset, Toolset>();

/** The tools of an episode that begins with this state. */
export async function toolsFor(environment: CompiledEnvironment, state: unknown): Promise<EpisodeTools> {
  const { roles } = environment;
  if (roles === null) return { tools: await ownTools(environment, state, null), roleTools: new Map() };
  const roleTools = new Map<string, Toolset>();
  for (const role of roles.names) roleTools.set(role, complete(environment, await ownTools(environment, state, role)));
  return { tools: NONE, roleTools };
}

async function ownTools({ name, definition, tools }: CompiledEnvironment, state: unknown, role: string | null): Promise<Toolset> {
  if (definition.toolsOf === undefined) return tools;
  const own = definition.toolsOf(state, role);
  if (!Array.isArray(own)) throw new PlatformError("environment.invalid", `toolsOf of '${name}' must return an array of tools`);
  let toolset = compiled.get(own);
  if (toolset === undefined) {
    toolset = compileTools(withAgentTools(definition, own));
    compiled.set(own, toolset);
  }
  return toolset;
}

function complete({ definition, roles, waitTool }: CompiledEnvironment, own: Toolset): Toolset {
  let all = completed.get(own);
  if (all === undefined) {
    checkToolsOfRoles(definition, roles, own);
    all = waitTool === null ? own : new Map([...own, [WAIT_TOOL, waitTool]]);
    completed.set(own, all);
  }
  return all;
}
