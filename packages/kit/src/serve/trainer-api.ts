import type { IncomingMessage, ServerResponse } from "node:http";
import { isObject, PlatformError, problemsOf, resetRequest, type TaskPage } from "@aenv/contract";
import type { z } from "zod";
import type { BlueprintEndpoint } from "../compile/environment.ts";
import type { CompiledSchema } from "../compile/schema.ts";
import type { HealthReport } from "../definition/definition.ts";
import { abortWhenGone, parseObject, readBody, sendFailure, sendText, untilGone } from "../http/exchange.ts";
import { type CallHooks, quietHooks } from "../instances/call.ts";
import type { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { plainTask } from "../instances/tasks.ts";

/** One request of the trainer API: whose, where, and with what. */
export interface Visit {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly instance: Instance;
  /** The path below the instance's prefix. */
  readonly path: string;
  readonly query: URLSearchParams;
}

type Handler = (visit: Visit, host: Host, maxBodyBytes: number) => Promise<unknown>;

const handlers: Readonly<Record<string, Handler>> = {
  "GET /functions/list": async (_, host) => host.blueprint.catalogue,
  "POST /task/reward": async (visit, _, maxBodyBytes) => visit.instance.reward(await bodyOf(visit, maxBodyBytes), hooksFor(visit)),
  "GET /task/list": async (visit, host) => {
    const tasks = await host.tasks.of(visit.instance.episode.variables);
    const { items, total } = page([...tasks.values()], visit.query);
    return { items: items.map(plainTask), total };
  },
  "POST /task/reset": async (visit, host, maxBodyBytes) =>
    host.reset(visit.instance.id, parseRequest(resetRequest, await bodyOf(visit, maxBodyBytes)), untilGone(visit.response)),
  "POST /state/snapshot": async (visit) => visit.instance.snapshot(untilGone(visit.response)),
  "POST /state/restore": async (visit, _, maxBodyBytes) => {
    await visit.instance.restore((await bodyOf(visit, maxBodyBytes)).snapshot, untilGone(visit.response));
    return null;
  },
};

/** Answers everything of an instance that is not MCP: rewards, functions, health, tasks, reset and state. */
export async function answerTrainer(visit: Visit, host: Host, maxBodyBytes: number): Promise<void> {
  const { request, response, path } = visit;
  const key = `${request.method} ${path}`;
  if (host.blueprint.healthKeys.has(key)) return answerHealth(visit);
  try {
    const handler = handlers[key];
    if (handler !== undefined) return sendSuccess(response, await handler(visit, host, maxBodyBytes));
    const endpoint = host.blueprint.endpoints.get(key);
    if (endpoint === undefined) return answerUnknown(path, host, response);
    sendSuccess(response, await visit.instance.callEndpoint(endpoint, await argumentsOf(visit, endpoint, maxBodyBytes), hooksFor(visit)));
  } catch (error) {
    // What a function or a reward is given wrongly, and what it does wrong, is a 500 in the original's protocol.
    const isCall = path === "/task/reward" || host.blueprint.endpoints.has(key);
    const isOriginals = isCall && error instanceof PlatformError && error.code === "request.invalid";
    host.log(key, error);
    sendFailure(response, error, isOriginals ? 500 : undefined);
  }
}

async function answerHealth({ instance, response }: Visit): Promise<void> {
  let report: HealthReport;
  try {
    report = await instance.health();
  } catch (error) {
    return sendFailure(response, error);
  }
  // Whoever looks only at the status, as Kubernetes does, must see the truth too.
  const isHealthy = isObject(report) && (report.status === "healthy" || report.status === "success");
  sendSuccess(response, report, isHealthy ? 200 : 503);
}

function answerUnknown(path: string, host: Host, response: ServerResponse): void {
  const known = [...Object.keys(handlers), ...host.blueprint.healthKeys, ...host.blueprint.endpoints.keys()];
  const isOtherMethod = known.some((key) => key.slice(key.indexOf(" ") + 1) === path);
  if (isOtherMethod) sendText(response, 405, "Method Not Allowed");
  else sendText(response, 404, "Not Found");
}

function sendSuccess(response: ServerResponse, data: unknown, status = 200): void {
  sendText(response, status, JSON.stringify({ success: true, data: data === undefined ? null : data }), "application/json");
}

async function bodyOf({ request }: Visit, maxBodyBytes: number): Promise<Record<string, unknown>> {
  return parseObject(await readBody(request, maxBodyBytes));
}

async function argumentsOf(visit: Visit, endpoint: BlueprintEndpoint, maxBodyBytes: number): Promise<Record<string, unknown>> {
  if (visit.request.method === "GET" || visit.request.method === "DELETE") return fromQuery(visit.query, endpoint.input);
  return bodyOf(visit, maxBodyBytes);
}

/** A query knows only text: what the schema does not want as text is read as JSON. */
function fromQuery(query: URLSearchParams, schema: CompiledSchema): Record<string, unknown> {
  const properties = isObject(schema.input.properties) ? schema.input.properties : {};
  const args: Record<string, unknown> = {};
  for (const [key, text] of query) {
    const property = properties[key];
    args[key] = isObject(property) && property.type === "string" ? text : (tryJson(text) ?? text);
  }
  return args;
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function page(tasks: TaskPage["items"], query: URLSearchParams): TaskPage {
  const split = query.get("split");
  const chosen = split === null ? tasks : tasks.filter((task) => task.split === split || task.splits?.includes(split));
  const offset = wholeNumber(query, "offset", 0);
  return { items: chosen.slice(offset, offset + wholeNumber(query, "limit", 100)), total: chosen.length };
}

function wholeNumber(query: URLSearchParams, name: string, otherwise: number): number {
  const text = query.get(name);
  if (text === null) return otherwise;
  if (!/^\d{1,9}$/.test(text)) throw new PlatformError("request.invalid", `${name} is '${text}'; it must be a whole number from 0 on`);
  return Number(text);
}

/** The request's fields, or an error that names the first wrong one. */
export function parseRequest<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PlatformError("request.invalid", `Invalid request parameters: ${problemsOf(parsed.error, "the body")}`);
}

function hooksFor({ response }: Visit): CallHooks {
  const controller = new AbortController();
  abortWhenGone(controller, response);
  return quietHooks(controller);
}
