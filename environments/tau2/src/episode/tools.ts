import type { Schema, ToolDefinition } from "@aenv/kit";
import type { DomainDefinition } from "../core/domain.ts";
import type { JsonSchema } from "../core/parameters.ts";
import type { Tool } from "../core/tool.ts";
import { DONE } from "../gym/gym.ts";
import { readJson } from "../python/json-reader.ts";
import { writeJson } from "../python/json-writer.ts";
import { Dict } from "../python/values.ts";
import type { Requestor } from "../words/schemas.ts";
import type { Episode } from "./episode.ts";

/** A tool's schema in the words that are to be used. */
export type WordsOf = (domain: DomainDefinition, requestor: Requestor, tool: Pick<Tool, "name" | "schema">) => JsonSchema;

interface ToolText {
  readonly name: string;
  readonly description: string;
  readonly parameters: JsonSchema;
}

/**
 * The tools of one domain, or of several under one roof: which of them an episode has, its environment says.
 * The user's tools are the agent's in solo mode.
 */
export function toolsFor(domains: readonly DomainDefinition[], isSolo: boolean | null, wordsOf: WordsOf): ToolDefinition<Episode>[] {
  const byName = new Map<string, ToolText>();
  for (const definition of domains) {
    const { agent, user, soloRefusal } = definition;
    const hasUserTools = user !== null && soloRefusal === null && isSolo !== false;
    const sides: [Requestor, readonly Tool<never>[]][] = [["assistant", agent.toolkit.tools]];
    if (hasUserTools) sides.push(["user", user.toolkit.tools]);
    for (const [requestor, tools] of sides) {
      for (const tool of tools.filter(({ isDiscoverable }) => !isDiscoverable)) {
        const text = wordsOf(definition, requestor, tool).function as ToolText;
        byName.set(text.name, merged(byName.get(text.name), text));
      }
    }
  }
  return [...byName.values(), DONE.function as ToolText].map(toolOf);
}

function toolOf({ name, description, parameters }: ToolText): ToolDefinition<Episode> {
  const required = Array.isArray(parameters.required) ? parameters.required : [];
  return {
    name,
    description,
    input: unchecked(parameters) as never,
    run: (input, { state }) => state.act(actionOf(name, input as Record<string, unknown>, required)),
  };
}

/** Arguments that are left out come as null from some clients; the tool is to take its own default then. */
function actionOf(name: string, input: Record<string, unknown>, required: readonly unknown[]): string {
  const given = Object.entries(input).filter(([key, value]) => value !== null || required.includes(key));
  return writeJson(Dict.of({ name, arguments: readJson(JSON.stringify(Object.fromEntries(given))) }));
}

/** Described to clients but not enforced: what is wrong with arguments the domain's tools say themselves, in words that are compared. */
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

/** Two domains' tools of one name: each argument of either, and required what both require. */
function merged(first: ToolText | undefined, second: ToolText): ToolText {
  if (first === undefined || JSON.stringify(first.parameters) === JSON.stringify(second.parameters)) return first ?? second;
  const list = ({ parameters }: ToolText): unknown[] => (Array.isArray(parameters.required) ? parameters.required : []);
  const part = (key: string): object => ({ ...(first.parameters[key] as object), ...(second.parameters[key] as object) });
  const parameters = {
    ...first.parameters,
    properties: part("properties"),
    ...("$defs" in first.parameters || "$defs" in second.parameters ? { $defs: part("$defs") } : {}),
    required: list(first).filter((name) => list(second).includes(name)),
  };
  return { ...first, parameters };
}
