import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { isObject, messageOf } from "@aenv/contract";
import { digestOfFile } from "../journal/digest.ts";
import { type Agent, isProgram, type ProgramAgent, type ProgramStart } from "../player/agent.ts";
import { AgentError } from "../player/failure.ts";

/** What a module may export as its default: a function that plays a whole episode, or an agent. */
export type AgentModule = ((start: ProgramStart) => Promise<string | null | undefined> | string | null | undefined) | Agent;

/** An agent from a TypeScript or JavaScript file. */
export async function moduleAgent(path: string): Promise<Agent> {
  const file = resolve(path);
  let loaded: { default?: AgentModule };
  try {
    loaded = await import(pathToFileURL(file).href);
  } catch (cause) {
    throw new AgentError(`the agent ${path} cannot be loaded: ${messageOf(cause)}`, { cause });
  }
  const { default: exported } = loaded;
  // An edited file is another agent.
  const source = { path, digest: digestOfFile(file) };
  if (typeof exported === "function") {
    return { name: "module", settings: source, run: async (start) => ({ text: (await exported(start)) ?? null }) };
  }
  if (isAgent(exported)) {
    const agent = exported;
    const common = { name: agent.name, settings: { ...agent.settings, ...source } };
    if (!isProgram(agent)) return { ...common, begin: (start) => agent.begin(start) };
    const prepare: ProgramAgent["prepare"] = agent.prepare && ((place) => agent.prepare?.(place) ?? Promise.resolve());
    return { ...common, ...(prepare && { prepare }), run: (start) => agent.run(start) };
  }
  throw new AgentError(
    `the agent ${path} has no default export that is a function or an agent; write: export default async ({ agentUrl, model }) => { … }`,
  );
}

function isAgent(exported: unknown): exported is Agent {
  return isObject(exported) && ("run" in exported || "begin" in exported);
}
