import { z } from "zod";
import { ApiError } from "./error.ts";
import type { Message, OfferedTool } from "./script.ts";

/** Valid tool names, in the list of tools and in tool calls. */
export const toolName = z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/, "must match ^[a-zA-Z0-9_-]{1,64}$");

/** The text of a message, or its parts, of which only text parts are used. */
export const content = z.union([z.string(), z.array(z.looseObject({ type: z.string(), text: z.string().optional() }))]);

export function textOf(value: z.infer<typeof content> | null | undefined): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : value.map((part) => part.text ?? "").join("");
}

export function parseBody<T>(schema: z.ZodType<T>, body: unknown): T {
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0];
  const param = (issue?.path ?? []).map((key) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
  throw new ApiError(400, `Invalid '${param.slice(1)}': ${issue?.message}`, { param: param.slice(1), code: "invalid_value" });
}

/** The rules for a function's parameters: an object schema, and in strict mode a closed one with all fields required. */
export function checkParameters({ name, parameters, strict }: OfferedTool, param: string): void {
  if (parameters === undefined) return;
  const wrong = objectProblem(parameters) ?? (strict === true ? strictProblem(parameters, "the schema") : null);
  if (wrong === null) return;
  throw new ApiError(400, `Invalid schema for function '${name}': ${wrong}`, { param, code: "invalid_function_parameters" });
}

function objectProblem(schema: Readonly<Record<string, unknown>>): string | null {
  if (schema.type !== "object") return `schema must be of type "object", got ${JSON.stringify(schema.type)}`;
  if (schema.properties === undefined) return "object schema is missing 'properties'";
  const union = ["oneOf", "anyOf", "allOf", "enum", "not"].find((keyword) => keyword in schema);
  return union === undefined ? null : `schema must not have '${union}' at the top level`;
}

function strictProblem(schema: unknown, where: string): string | null {
  if (typeof schema !== "object" || schema === null) return null;
  if (Array.isArray(schema)) return firstProblem(Object.entries(schema), where);
  const { type, properties = {}, required = [], additionalProperties, ...rest } = schema as Record<string, unknown>;
  if ("default" in rest) return `${where}: 'default' is not permitted`;
  if (type === "object" && additionalProperties !== false) return `${where}: 'additionalProperties' must be given and false`;
  const missing = Object.keys(properties as object).find((key) => !(required as string[]).includes(key));
  if (missing !== undefined) return `${where}: 'required' must hold every property, and lacks '${missing}'`;
  const { items, anyOf, $defs } = rest;
  return firstProblem([...Object.entries(properties as object), ["items", items], ["anyOf", anyOf], ...Object.entries($defs ?? {})], where);
}

function firstProblem(parts: readonly (readonly [string, unknown])[], where: string): string | null {
  for (const [key, part] of parts) {
    const problem = strictProblem(part, `${where}.${key}`);
    if (problem !== null) return problem;
  }
  return null;
}

/** Every tool call must be followed by its output, and every output must have a call. */
export function checkAnswers(messages: readonly Message[]): void {
  let open = new Set<string>();
  for (const message of messages) {
    if (message.role === "tool") {
      if (open.delete(message.toolCallId ?? "")) continue;
      throw new ApiError(400, `No tool call found for the tool output with call id '${message.toolCallId}'`, { param: "messages" });
    }
    refuseOpen(open);
    open = new Set((message.toolCalls ?? []).map((call) => call.id));
  }
  refuseOpen(open);
}

function refuseOpen(open: ReadonlySet<string>): void {
  if (open.size === 0) return;
  throw new ApiError(400, `Tool calls must be followed by their outputs; none was given for ${[...open].join(", ")}`, {
    param: "messages",
  });
}
