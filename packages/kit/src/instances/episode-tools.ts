import { type ChildGrant, PlatformError } from "@aenv/contract";
import { reexportedTools } from "../children/reexported-tools.ts";
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
/** Lists with the tools of children, by the environment's own list and by what is re-exported. */
const extended = new WeakMap<Toolset, Map<string, Promise<Toolset>>>();
/** The tools of a role with those of the platform, by the former. */
const completed = new WeakMap<Toolset, Toolset>();

/** The tools of an episode that begins with this state: the environment's own, and those of its children that it re-exports. */
export async function toolsFor(
  environment: CompiledEnvironment,
  state: unknown,
  children: readonly ChildGrant[] = [],
): Promise<EpisodeTools> {
  const { roles, name } = environment;
  const toolsOf = async (role: string | null) => withChildren(name, await ownTools(environment, state, role), children);
  if (roles === null) return { tools: await toolsOf(null), roleTools: new Map() };
  const roleTools = new Map<string, Toolset>();
  for (const role of roles.names) roleTools.set(role, complete(environment, await toolsOf(role)));
  return { tools: NONE, roleTools };
}

async function withChildren(environment: string, own: Toolset, children: readonly ChildGrant[]): Promise<Toolset> {
  const reexported = children.filter(({ reexport }) => reexport.length > 0);
  if (reexported.length === 0) return own;
  const key = JSON.stringify(reexported);
  const known = extended.get(own) ?? new Map<string, Promise<Toolset>>();
  extended.set(own, known);
  let toolset = known.get(key);
  if (toolset === undefined) {
    toolset = extend(environment, own, reexported);
    known.set(key, toolset);
  }
  return toolset;
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

async function extend(environment: string, own: Toolset, children: readonly ChildGrant[]): Promise<Toolset> {
  const added = await compileTools(reexportedTools(children));
  for (const name of added.keys())
    if (own.has(name))
      throw new PlatformError(
        "environment.invalid",
        `'${environment}' has a tool '${name}' of its own, which is also that of a child; rename it`,
      );
  return new Map([...own, ...added]);
}
