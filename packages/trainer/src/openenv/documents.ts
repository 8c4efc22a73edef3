import type { EnvironmentVersion } from "@aenv/server/trainer-services";

type Json = Readonly<Record<string, unknown>>;

const text = { type: "string" };
const count = { type: "integer", minimum: 0 };
const any = { type: "object", additionalProperties: true };
const nullable = (type: string) => ({ type: [type, "null"] });

export function metadataOf({ name, version, config }: EnvironmentVersion, readme: string | null = null): Json {
  const { description } = config;
  return {
    name,
    description: typeof description === "string" ? description : "",
    readme_content: readme,
    version,
    author: null,
    documentation_url: null,
  };
}

/** Clients recognise an environment of tools by the title of its action. */
export const schemas: Json = {
  action: {
    title: "CallToolAction",
    type: "object",
    properties: {
      type: { enum: ["call_tool", "list_tools"], default: "call_tool" },
      tool_name: { ...text, description: "the tool to call; for call_tool" },
      arguments: { ...any, description: "the arguments of the tool" },
      metadata: any,
    },
    required: ["tool_name"],
  },
  observation: {
    title: "Observation",
    type: "object",
    description: "of a reset: prompt, messages, task_id, available_tools; of list_tools: tools; of call_tool: tool_name, result, error",
    properties: {
      prompt: text,
      messages: { type: "array", items: any },
      task_id: nullable("string"),
      available_tools: { type: "array", items: text },
      tools: { type: "array", items: any },
      tool_name: text,
      result: {},
      error: nullable("object"),
      metadata: any,
    },
  },
  state: {
    title: "State",
    type: "object",
    properties: {
      episode_id: nullable("string"),
      step_count: count,
      env: text,
      task_id: nullable("string"),
      split: nullable("string"),
      index: nullable("integer"),
      done: { type: "boolean" },
      reward: nullable("number"),
      max_steps: nullable("integer"),
    },
    required: ["episode_id", "step_count"],
  },
};

const ok = (description: string) => ({ responses: { 200: { description, content: { "application/json": { schema: any } } } } });
const withBody = (schema: Json) => ({ requestBody: { content: { "application/json": { schema } } } });

/** What `openenv validate` reads. The version is that of the protocol. */
export function openApiOf({ name }: EnvironmentVersion): Json {
  return {
    openapi: "3.1.0",
    info: { title: `${name} as an OpenEnv environment`, version: "1.0.0" },
    paths: {
      "/health": { get: ok("whether the server runs") },
      "/metadata": { get: ok("what the environment is") },
      "/schema": { get: ok("schemas of action, observation and state") },
      "/state": { get: ok("the state of an episode") },
      "/reset": { post: { ...withBody(any), ...ok("the first observation of an episode") } },
      "/step": {
        post: {
          ...withBody({ type: "object", properties: { action: schemas.action }, required: ["action"] }),
          ...ok("the observation after an action"),
        },
      },
      "/mcp": { post: { ...withBody(any), ...ok("an answer of JSON-RPC") } },
    },
  };
}
