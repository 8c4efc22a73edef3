import type { IncomingMessage, ServerResponse } from "node:http";
import {
  forfeitRequest,
  type InstanceRouteName,
  instanceRoutes,
  isObject,
  isPlatformError,
  PlatformError,
  problemsOf,
  type Route,
  replyRequest,
  resetRequest,
  stepRewardRequest,
  type TaskPage,
  tryJson,
} from "@aenv/contract";
import type { z } from "zod";
import type { CompiledEndpoint } from "../compile/environment.ts";
import type { CompiledSchema } from "../compile/schema.ts";
import { abortOnDisconnect, disconnectSignal, InvalidBody, parseObject, readBody, sendFailure, sendText } from "../http/exchange.ts";
import { type CallHooks, quietHooks } from "../instances/call.ts";
import type { Host } from "../instances/host.ts";
import type { Instance } from "../instances/instance.ts";
import { taskJson } from "../instances/tasks.ts";

/** One request of the trainer API. */
export interface TrainerRequest {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly instance: Instance;
  /** The path below the instance's prefix. */
  readonly path: string;
  readonly query: URLSearchParams;
}

/** Routes whose paths the environment defines: `environment.endpoints` lists them. */
type EndpointRouteName = "callFunction" | "callEndpoint";
/** Routes below `/role/<role>`. */
type RoleRouteName = "roleMcp" | "roleMcpStream" | "roleMcpEnd" | "forfeit";
type RouteName = Exclude<InstanceRouteName<"trainer">, EndpointRouteName | RoleRouteName>;
type Handler = (call: TrainerRequest, host: Host, maxBodyBytes: number) => Promise<unknown>;

const handlers: Readonly<Record<RouteName, Handler>> = {
  health: async (call) => call.instance.health(),
  listFunctions: async (_, host) => host.environment.catalogue,
  reward: async (call, _, maxBodyBytes) => call.instance.endpoints.reward(await bodyOf(call, maxBodyBytes), hooksFor(call)),
  listTasks: async (call, host) => {
    const tasks = await host.tasks.of(call.instance.episode.variables);
    const { items, total } = page([...tasks.values()], call.query);
    return { items: items.map(taskJson), total };
  },
  reset: async (call, host, maxBodyBytes) =>
    host.reset(call.instance.id, parseRequest(resetRequest, await bodyOf(call, maxBodyBytes)), disconnectSignal(call.response)),
  snapshot: async (call) => call.instance.snapshot(disconnectSignal(call.response)),
  restore: async (call, _, maxBodyBytes) => {
    await call.instance.restore((await bodyOf(call, maxBodyBytes)).snapshot, disconnectSignal(call.response));
    return null;
  },
  digest: async (call) => call.instance.authorEpisode.digest(hooksFor(call)),
  abilities: async ({ instance }, host) => ({
    ...host.environment.abilities,
    ...(instance.hasModels && { recording: true }),
    ...((instance.rights.children ?? []).length > 0 && { children: true }),
  }),
  recording: async ({ instance }) => ({ exchanges: instance.recording.read() }),
  children: async (call) => call.instance.listChildren(hooksFor(call).controller.signal),
  prompt: async (call) => call.instance.authorEpisode.prompt(roleHooks(call, call.query.get("role"))),
  reply: async (call, _, maxBodyBytes) => {
    const { message, role } = parseRequest(replyRequest, await bodyOf(call, maxBodyBytes));
    return call.instance.authorEpisode.reply(message, roleHooks(call, role));
  },
  hear: async (call, _, maxBodyBytes) => {
    const { message, role } = parseRequest(replyRequest, await bodyOf(call, maxBodyBytes));
    return call.instance.authorEpisode.hear(message, roleHooks(call, role));
  },
  status: async (call) => call.instance.authorEpisode.status(hooksFor(call)),
  stepReward: async (call, _, maxBodyBytes) => {
    const { role } = parseRequest(stepRewardRequest, await bodyOf(call, maxBodyBytes));
    return call.instance.authorEpisode.stepReward(roleHooks(call, role));
  },
  oracle: async (call) => call.instance.authorEpisode.oracle(roleHooks(call, call.query.get("role"))),
};

const FORFEIT = /^\/role\/([^/]+)\/forfeit$/;

async function forfeit(call: TrainerRequest, role: string, maxBodyBytes: number): Promise<unknown> {
  const { reason } = parseRequest(forfeitRequest, await bodyOf(call, maxBodyBytes));
  const { play } = call.instance;
  return { forfeited: await play.forfeit(play.surfaceOf(role).role, reason, hooksFor(call)) };
}

/** Route names by `METHOD /path`. */
const routeNames = new Map((Object.keys(handlers) as RouteName[]).map((name) => [keyOf(instanceRoutes[name]), name]));

/** Answers every request to an instance that is not MCP: rewards, functions, health, tasks, reset and state. */
export async function answerTrainer(call: TrainerRequest, host: Host, maxBodyBytes: number): Promise<void> {
  const { request, response, path } = call;
  const key = `${request.method} ${path}`;
  const endpoint = host.environment.endpoints.get(key);
  const name = host.environment.healthKeys.has(key) ? "health" : routeNames.get(key);
  if (name === "health") return answerHealth(call, host, maxBodyBytes);
  try {
    if (name === "recording" && request.headers.accept !== "application/json")
      return sendText(response, 200, linesOf(call.instance.recording.read()), "application/jsonl");
    if (name !== undefined) return sendSuccess(response, await handlers[name](call, host, maxBodyBytes));
    const [, role] = (endpoint === undefined && request.method === "POST" && FORFEIT.exec(path)) || [];
    if (role !== undefined) return sendSuccess(response, await forfeit(call, role, maxBodyBytes));
    if (endpoint === undefined) return answerUnknown(path, host, response);
    sendSuccess(response, await call.instance.endpoints.call(endpoint, await argumentsOf(call, endpoint, maxBodyBytes), hooksFor(call)));
  } catch (error) {
    // In the original's protocol, wrong arguments of a function or a reward are a 500. A body without arguments is the client's mistake.
    const isOfArguments = isPlatformError(error, "request.invalid") && !(error instanceof InvalidBody);
    const isOriginals = (name === "reward" || endpoint !== undefined) && isOfArguments;
    host.log(key, error);
    sendFailure(response, error, isOriginals ? 500 : undefined);
  }
}

async function answerHealth(call: TrainerRequest, host: Host, maxBodyBytes: number): Promise<void> {
  let report: unknown;
  try {
    report = await handlers.health(call, host, maxBodyBytes);
  } catch (error) {
    return sendFailure(call.response, error);
  }
  // Kubernetes and load balancers look at the status only.
  const isHealthy = isObject(report) && (report.status === "healthy" || report.status === "success");
  sendSuccess(call.response, report, isHealthy ? 200 : 503);
}

function answerUnknown(path: string, host: Host, response: ServerResponse): void {
  const known = [...routeNames.keys(), ...host.environment.healthKeys, ...host.environment.endpoints.keys()];
  const isOtherMethod = known.some((key) => key.slice(key.indexOf(" ") + 1) === path);
  if (isOtherMethod) sendText(response, 405, "Method Not Allowed");
  else sendText(response, 404, "Not Found");
}

function keyOf({ method, path }: Route): string {
  return `${method} ${path}`;
}

function sendSuccess(response: ServerResponse, data: unknown, status = 200): void {
  sendText(response, status, JSON.stringify({ success: true, data: data === undefined ? null : data }), "application/json");
}

/** JSON lines, one for each value. */
function linesOf(values: readonly unknown[]): string {
  return values.map((value) => `${JSON.stringify(value)}\n`).join("");
}

async function bodyOf({ request }: TrainerRequest, maxBodyBytes: number): Promise<Record<string, unknown>> {
  return parseObject(await readBody(request, maxBodyBytes));
}

async function argumentsOf(call: TrainerRequest, endpoint: CompiledEndpoint, maxBodyBytes: number): Promise<Record<string, unknown>> {
  if (call.request.method === "GET" || call.request.method === "DELETE") return fromQuery(call.query, endpoint.input);
  return bodyOf(call, maxBodyBytes);
}

/** Query values are text: a value whose schema is not a string is parsed as JSON. */
function fromQuery(query: URLSearchParams, schema: CompiledSchema): Record<string, unknown> {
  const properties = isObject(schema.input.properties) ? schema.input.properties : {};
  const args: Record<string, unknown> = {};
  for (const [key, text] of query) {
    const property = properties[key];
    args[key] = isObject(property) && property.type === "string" ? text : (tryJson(text) ?? text);
  }
  return args;
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
  if (!/^\d{1,9}$/.test(text)) throw new PlatformError("request.invalid", `${name} is '${text}'; it must be a non-negative integer`);
  return Number(text);
}

/** The parsed request, or an error that names the invalid fields. */
export function parseRequest<S extends z.ZodType>(schema: S, value: unknown): z.infer<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new PlatformError("request.invalid", `Invalid request parameters: ${problemsOf(parsed.error, "the body")}`);
}

function hooksFor({ response }: TrainerRequest): CallHooks {
  const controller = new AbortController();
  abortOnDisconnect(controller, response);
  return quietHooks(controller);
}

/** Hooks of a request about a role, which it must name if there are roles. */
function roleHooks(call: TrainerRequest, role: string | null | undefined): CallHooks {
  return { ...hooksFor(call), role: call.instance.roleFor(role) };
}
