import type { Schema, ToolDefinition } from "@aenv/kit";
import { DONE } from "../conversation/gym.ts";
import type { Domain, DomainDefinition } from "../core/domain.ts";
import { agentCall, type ToolCall } from "../core/messages/messages.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import { readJson } from "../python/json/reader.ts";
import { Dict, type PyValue } from "../python/values/values.ts";
import type { Episode } from "./episode.ts";

interface ToolText {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

const listed = new WeakMap<Domain, Map<string, readonly ToolDefinition<Episode>[]>>();

/** An episode's tools in the domain's order, then `done`. Episodes of a domain with the same tools share one list. */
export function toolsOfEpisode(episode: Episode): readonly ToolDefinition<Episode>[] {
  const { domain, task, isSolo } = episode;
  let lists = listed.get(domain);
  if (lists === undefined) {
    lists = new Map();
    listed.set(domain, lists);
  }
  const key = JSON.stringify(isSolo ? task.user_tools : "conversation");
  let tools = lists.get(key);
  if (tools === undefined) {
    tools = toolsFrom(episode.tools());
    lists.set(key, tools);
  }
  return tools;
}

/** The tools of a domain before there is an episode or a data directory. */
export function toolsOfDomain({ agent, user, soloError }: DomainDefinition, isSolo: boolean | null): readonly ToolDefinition<Episode>[] {
  const hasUserTools = user !== null && soloError === null && isSolo !== false;
  const tools = [...agent.toolkit.tools, ...(hasUserTools ? user.toolkit.tools : [])];
  return toolsFrom([...tools.filter(({ isDiscoverable }) => !isDiscoverable).map(({ schema }) => schema), DONE]);
}

function toolsFrom(schemas: readonly JsonSchema[]): readonly ToolDefinition<Episode>[] {
  return schemas.map((schema) => toolOf(schema.function as ToolText));
}

function toolOf({ name, description, parameters }: ToolText): ToolDefinition<Episode> {
  const required = Array.isArray(parameters.required) ? parameters.required : [];
  return {
    name,
    description,
    input: unchecked(parameters) as never,
    run: (_, { state, inputText, signal }) => state.act(callOf(name, readJson(inputText()), required), signal),
  };
}

/** Some clients send null for an optional argument that they leave out; such arguments are dropped, so that the tool uses its default. */
function callOf(name: string, input: PyValue, required: readonly unknown[]): ToolCall {
  const given = [...(input instanceof Dict ? input : [])].filter(([key, value]) => value !== null || required.includes(key));
  return agentCall(name, new Dict(given));
}

/** Listed for clients but not enforced: the domain's tools report wrong arguments themselves, in the reference's words. */
function unchecked(schema: JsonSchema): Schema {
  const describe = () => ({ ...schema });
  return {
    "~standard": {
      version: 1,
      vendor: "tau2",
      validate: (value: unknown) => ({ value: value ?? {} }),
      jsonSchema: { input: describe, output: describe },
    },
  } as Schema;
}
