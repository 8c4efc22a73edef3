import type { Domain } from "../core/domain.ts";
import type { JsonSchema } from "../core/tools/parameters.ts";
import type { Tool } from "../core/tools/tool.ts";

export type Requestor = "assistant" | "user";

interface StoredTool {
  readonly requestor: Requestor;
  readonly name: string;
  /** Missing for tools that are not offered to models. */
  readonly openai_schema?: JsonSchema;
}

const read = new WeakMap<Domain, ReadonlyMap<string, JsonSchema>>();

/** The schema of a tool for models: from the data directory's `schemas/<domain>.json`, else our own. */
export function schemaOf(domain: Domain, requestor: Requestor, { name, schema }: Pick<Tool, "name" | "schema">): JsonSchema {
  let stored = read.get(domain);
  if (stored === undefined) {
    stored = readSchemas(domain);
    read.set(domain, stored);
  }
  return stored.get(`${requestor} ${name}`) ?? schema;
}

function readSchemas({ data, definition }: Domain): ReadonlyMap<string, JsonSchema> {
  const file = `${definition.folder ?? definition.name}.json`;
  if (!data.has("schemas", file)) return new Map();
  const tools: unknown = JSON.parse(data.text("schemas", file));
  if (!Array.isArray(tools)) throw new Error(`schemas/${file} in ${data.path} must contain a list of tools`);
  return new Map(
    (tools as StoredTool[]).flatMap(({ requestor, name, openai_schema }) =>
      openai_schema ? [[`${requestor} ${name}`, openai_schema]] : [],
    ),
  );
}
