import type { PyValue } from "../../python/values/values.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** A tool's parameter as models see it. Arguments are not checked against the schema. */
export interface ParameterSpec {
  readonly schema: JsonSchema;
  readonly description: string;
  readonly defaultValue?: PyValue;
}

export type ParameterSpecs = Readonly<Record<string, ParameterSpec>>;

/** A parameter of any schema. */
export function parameter(schema: JsonSchema, description: string): ParameterSpec {
  return { schema, description };
}

export const text = (description: string): ParameterSpec => parameter({ type: "string" }, description);
export const integer = (description: string): ParameterSpec => parameter({ type: "integer" }, description);
export const number = (description: string): ParameterSpec => parameter({ type: "number" }, description);
export const boolean = (description: string): ParameterSpec => parameter({ type: "boolean" }, description);
export const texts = (description: string): ParameterSpec => parameter({ type: "array", items: { type: "string" } }, description);

/** Makes a parameter optional. */
export function optional(spec: ParameterSpec, defaultValue: PyValue): ParameterSpec {
  return { ...spec, defaultValue };
}

/** The JSON Schema of all parameters of a tool. */
export function parametersSchema(specs: ParameterSpecs, definitions: JsonSchema | null): JsonSchema {
  const properties: Record<string, unknown> = {};
  const required: string[] = [];
  for (const [name, { schema, description, defaultValue }] of Object.entries(specs)) {
    const isReference = "$ref" in schema;
    properties[name] = {
      ...schema,
      description,
      ...(isReference ? {} : { title: titleOf(name) }),
      ...(defaultValue === undefined ? {} : { default: defaultValue }),
    };
    if (defaultValue === undefined) required.push(name);
  }
  return {
    ...(definitions === null ? {} : { $defs: definitions }),
    properties,
    ...(required.length === 0 ? {} : { required }),
    title: "parameters",
    type: "object",
  };
}

function titleOf(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(" ");
}
