import { isObject, type JsonSchema, messageOf, PlatformError } from "@aenv/contract";
import type { Schema } from "../definition/definition.ts";
import { isStandardSchema, type StandardSchemaV1 } from "../definition/standard-schema.ts";

const TARGET = "draft-2020-12";

/** A compiled schema: its JSON Schemas for clients, and the validator for values. */
export interface CompiledSchema {
  readonly input: JsonSchema;
  readonly output: JsonSchema;
  readonly standard: StandardSchemaV1;
}

export type Checked = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly problem: string };

/** A schema that describes itself as the given JSON Schema and accepts every value. */
export function describedOnly(schema: JsonSchema): StandardSchemaV1 {
  const describe = () => schema;
  return {
    "~standard": { version: 1, vendor: "aenv", validate: (value) => ({ value }), jsonSchema: { input: describe, output: describe } },
  };
}

const NO_FIELDS = { type: "object", properties: {} };

/** The input of a tool without an input schema: any object, described as one without fields. */
export const anyObject: CompiledSchema = { input: NO_FIELDS, output: NO_FIELDS, standard: describedOnly(NO_FIELDS) };

/** Compiles an author's schema; `where` names it in errors. */
export async function compileSchema(schema: Schema, where: string): Promise<CompiledSchema> {
  if (isStandardSchema(schema)) return compileStandard(schema, where);
  if (isObject(schema)) return compileJsonSchema(schema, where);
  throw new PlatformError("environment.invalid", `${where} must be a zod schema, another Standard Schema or a JSON Schema object`);
}

/** Checks a value; synchronous if the schema is, because most are and a promise is expensive here. */
export function check(schema: CompiledSchema, value: unknown): Checked | Promise<Checked> {
  const result = schema.standard["~standard"].validate(value);
  return result instanceof Promise ? result.then(toChecked) : toChecked(result);
}

function toChecked(result: StandardSchemaV1.Result<unknown>): Checked {
  if (result.issues === undefined || result.issues.length === 0) return { ok: true, value: (result as { value: unknown }).value };
  return { ok: false, problem: result.issues.map(describeIssue).join(", ") };
}

function describeIssue(issue: StandardSchemaV1.Issue): string {
  if (issue.path === undefined || issue.path.length === 0) return issue.message;
  const path = issue.path.map((part) => String(typeof part === "object" ? part.key : part));
  return `${path.join(".")}: ${issue.message}`;
}

function compileStandard(schema: StandardSchemaV1, where: string): CompiledSchema {
  const describe = schema["~standard"].jsonSchema;
  if (describe === undefined) {
    throw new PlatformError(
      "environment.invalid",
      `${where}: the schema library '${schema["~standard"].vendor}' cannot describe itself as JSON Schema; use a version that implements Standard JSON Schema, or give a JSON Schema object`,
    );
  }
  try {
    return { input: describe.input({ target: TARGET }), output: describe.output({ target: TARGET }), standard: schema };
  } catch (error) {
    throw new PlatformError("environment.invalid", `${where} cannot be written as JSON Schema: ${messageOf(error)}`, { cause: error });
  }
}

/** Fills in the `default`s of the JSON Schema. */
async function compileJsonSchema(schema: JsonSchema, where: string): Promise<CompiledSchema> {
  // Loaded only if an author writes JSON Schema by hand: it doubles the start-up time.
  const isDraft7 = typeof schema.$schema === "string" && schema.$schema.includes("draft-07");
  // From the default export: a dynamically imported CommonJS module in a bundle has no other.
  const Ajv = isDraft7 ? (await import("ajv")).default.Ajv : (await import("ajv/dist/2020.js")).default.Ajv2020;
  const ajv = new Ajv({ allErrors: true, strict: false, useDefaults: true, validateFormats: false });
  let validate: import("ajv").ValidateFunction;
  try {
    validate = ajv.compile(schema);
  } catch (error) {
    throw new PlatformError("environment.invalid", `${where} is not a valid JSON Schema: ${messageOf(error)}`, { cause: error });
  }
  const standard: StandardSchemaV1 = {
    "~standard": {
      version: 1,
      vendor: "json-schema",
      jsonSchema: { input: () => schema, output: () => schema },
      validate: (value) => (validate(value) ? { value } : { issues: (validate.errors ?? []).map(toIssue) }),
    },
  };
  return { input: schema, output: schema, standard };
}

function toIssue(error: import("ajv").ErrorObject): StandardSchemaV1.Issue {
  const path = error.instancePath
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const params: Record<string, unknown> = error.params;
  if (error.keyword === "required") return { path: [...path, String(params.missingProperty)], message: "is required" };
  if (error.keyword === "additionalProperties") return { path: [...path, String(params.additionalProperty)], message: "is not known" };
  if (error.keyword === "enum") return { path, message: `must be one of ${JSON.stringify(params.allowedValues)}` };
  return { path, message: error.message ?? "is invalid" };
}
