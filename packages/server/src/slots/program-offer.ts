import {
  type Catalogue,
  catalogue,
  hostRoutes,
  instanceRoutes,
  isObject,
  messageOf,
  parseBoundedJson,
  readBoundedText,
  sandboxEnvelope,
  TimedSignal,
  taskPage,
} from "@aenv/contract";
import { Environment, type HttpAnswer, type Transport } from "@aenv/sdk";
import type { Dispatcher, Pool } from "undici";
import type { Metadata } from "../hub/versions/environment-version.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";
import { readAbilities } from "./program-episodes.ts";

/** Timeout for each question: a server that is not for agents may leave them unanswered. */
const ASK_MS = 10_000;

const NO_CATALOGUE: Catalogue = { total: 0, functions: [], reward: [], health: [] };

/**
 * What a program offers, as far as it says so: tools at `/mcp`, functions and rewards as the original's servers list them, and tasks and
 * episodes as environments of the kit do.
 */
export async function readProgram(pool: Pool, signal: AbortSignal): Promise<Metadata> {
  const url = "http://localhost";
  const options = { instanceUrl: url, transport: transportOf(pool, signal), skipHealthCheck: true, timeoutMs: ASK_MS, maxRetries: 0 };
  const [tools, functions, abilities, tasks, isShareable] = await Promise.all([
    Environment.use("program", options, (env) => env.listTools()).catch(() => []),
    readFunctions(pool, signal).catch(() => NO_CATALOGUE),
    ask(pool, instanceRoutes.abilities.path, signal).then(readAbilities, () => null),
    readTasks(pool, signal),
    isHost(pool, signal).catch(() => false),
  ]);
  signal.throwIfAborted();
  return {
    tools: tools.map((tool) => ({ ...tool, name: tool.name.slice(tool.name.indexOf("/") + 1) })),
    catalogue: functions,
    ...(abilities !== null && { abilities }),
    // A server without episodes may answer any path with any JSON.
    ...(abilities === null ? { taskCount: null } : tasks),
    keepsStateInModules: !isShareable,
  };
}

async function readFunctions(pool: Pool, signal: AbortSignal): Promise<Catalogue> {
  const answer: unknown = parseBoundedJson((await ask(pool, instanceRoutes.listFunctions.path, signal, responseLimits.offer)).text);
  return catalogue.parse(isObject(answer) ? answer.data : null);
}

/** A program without tasks has no such route, or an empty list. */
async function readTasks(pool: Pool, signal: AbortSignal): Promise<Pick<Metadata, "taskCount" | "tasksProblem">> {
  const { path } = instanceRoutes.listTasks;
  try {
    const { status, text } = await ask(pool, `${path}?limit=1`, signal, responseLimits.reset);
    if (status === 404 || status === 405) return { taskCount: null };
    const { success, data, error } = sandboxEnvelope.parse(parseBoundedJson(text));
    if (success) return { taskCount: taskPage.parse(data).total, tasksProblem: null };
    return { taskCount: null, tasksProblem: error ?? `GET ${path} was answered with ${status}` };
  } catch (error) {
    return { taskCount: null, tasksProblem: `GET ${path} was not answered with a page of tasks: ${messageOf(error)}` };
  }
}

/** Whether it serves many instances, as a process of the kit does. */
async function isHost(pool: Pool, signal: AbortSignal): Promise<boolean> {
  const answer: unknown = parseBoundedJson((await ask(pool, hostRoutes.describe.path, signal)).text);
  return isObject(answer) && isObject(answer.data) && answer.data.keepsStateInModules === false;
}

async function ask(
  pool: Pool,
  path: string,
  signal: AbortSignal,
  maxBytes: number = responseLimits.instance,
): Promise<{ readonly status: number; readonly text: string }> {
  using limit = new TimedSignal(ASK_MS, signal);
  const { statusCode, body } = await pool.request({ method: "GET", path, signal: limit.signal });
  return { status: statusCode, text: await readBoundedText(body, { maxBytes }) };
}

/** Requests of the SDK to a sandbox, also at a unix socket. */
function transportOf(pool: Pool, stop: AbortSignal): Transport {
  return {
    send: async ({ method, url, headers, body, signal }) => {
      const { pathname, search } = new URL(url);
      const answer = await pool.request({
        method: method as Dispatcher.HttpMethod,
        path: pathname + search,
        headers: { ...headers },
        ...(typeof body === "string" && { body }),
        signal: AbortSignal.any([stop, AbortSignal.timeout(ASK_MS), ...(signal ? [signal] : [])]),
      });
      return {
        status: answer.statusCode,
        header: (name) => answer.headers[name.toLowerCase()]?.toString() ?? null,
        text: (maxBytes = responseLimits.offer) => readBoundedText(answer.body, { maxBytes }),
        chunks: () => answer.body,
      } satisfies HttpAnswer;
    },
  };
}
