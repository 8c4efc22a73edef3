import { errorTable } from "@aenv/contract";
import { z } from "zod";
import { type ApiRoute, enveloped } from "./route.ts";

/** The OpenAPI description, generated from the route table that serves the API. */
export function openApi(routes: readonly ApiRoute[], version: string): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const one of routes) {
    const path = one.path.replace(/:(\w+)/g, "{$1}").replace(/\*$/, "{rest}");
    paths[path] ??= {};
    paths[path][one.method.toLowerCase()] = describe(one);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "AEnv",
      version,
      description: "Environments for agentic reinforcement learning: hub, instances, services and tokens.",
    },
    paths,
    components: {
      securitySchemes: { token: { type: "http", scheme: "bearer" } },
      schemas: { Error: errorEnvelope },
    },
  };
}

const errorEnvelope = {
  type: "object",
  required: ["success", "code", "message", "data", "error"],
  properties: {
    success: { const: false },
    code: { type: "integer", description: "the HTTP status" },
    message: { type: "string" },
    data: { type: "null" },
    error: {
      type: "object",
      required: ["code", "message", "retryable", "requestId"],
      properties: {
        code: { enum: Object.keys(errorTable) },
        message: { type: "string" },
        retryable: { type: "boolean", description: "whether the same request may succeed later" },
        requestId: { type: "string" },
      },
    },
  },
};

function describe(one: ApiRoute): Record<string, unknown> {
  const parameters = [...parametersOf(one.params, "path"), ...parametersOf(one.query, "query")];
  return {
    summary: one.summary,
    tags: [one.tag],
    ...(one.roles !== null && { security: [{ token: [] }], "x-roles": one.roles }),
    ...(parameters.length > 0 && { parameters }),
    ...(one.maxBodyBytes !== undefined && { "x-max-body-bytes": one.maxBodyBytes }),
    ...(one.body !== undefined && { requestBody: { content: { "application/json": { schema: toJsonSchema(one.body) } } } }),
    responses: {
      200: { description: "success", content: contentOf(one.answer) },
      default: { description: "error", content: { "application/json": { schema: ref("Error") } } },
    },
  };
}

function contentOf(answer: ApiRoute["answer"]): Record<string, unknown> {
  const { type, alsoType, schema } = answer instanceof z.ZodType ? enveloped(answer) : answer;
  return {
    [type]: schema === undefined ? {} : { schema: toJsonSchema(schema, "output") },
    ...(alsoType !== undefined && { [alsoType]: {} }),
  };
}

function parametersOf(schema: z.ZodType | undefined, place: "path" | "query"): Record<string, unknown>[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(schema) as { properties?: Record<string, unknown>; required?: string[] };
  return Object.entries(properties).map(([name, shape]) => ({
    name,
    in: place,
    required: place === "path" || required.includes(name),
    schema: shape,
  }));
}

function toJsonSchema(schema: z.ZodType, io: "input" | "output" = "input"): Record<string, unknown> {
  const { $schema: _, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}

function ref(name: string): Record<string, string> {
  return { $ref: `#/components/schemas/${name}` };
}

/** A self-contained page that shows the description. */
export function openApiPage(description: Record<string, unknown>): string {
  const paths = description.paths as Record<string, Record<string, { summary: string; tags: string[]; "x-roles"?: string[] }>>;
  const rows = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(
      ([method, one]) =>
        `<tr><td class="m ${method}">${method.toUpperCase()}</td><td><code>${escapeHtml(path)}</code></td><td>${escapeHtml(one.summary)}</td><td>${one["x-roles"]?.join(" or ") ?? "all"}</td></tr>`,
    ),
  );
  return `<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>AEnv API</title>
<style>body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:70rem;padding:0 1rem;color:#1b2733}table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.4rem .6rem;border-bottom:1px solid #e3e8ee;vertical-align:top}.m{font-weight:600}.get{color:#0a6cb8}.post{color:#1a7f37}.put{color:#9a6700}.delete{color:#cf222e}code{background:#f4f6f8;padding:.1rem .3rem;border-radius:.2rem}@media(prefers-color-scheme:dark){body{background:#11161c;color:#dbe3ea}td,th{border-color:#2a333d}code{background:#1c242c}}</style>
<h1>AEnv API</h1><p>OpenAPI document: <a href="/openapi.json">/openapi.json</a></p>
<table><thead><tr><th>Method</th><th>Path</th><th>Description</th><th>Roles</th></tr></thead><tbody>${rows.join("")}</tbody></table></html>`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);
}
