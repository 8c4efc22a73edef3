import { type Catalogue, catalogue, isObject, parseBoundedJson, readBoundedText, TimedSignal } from "@aenv/contract";
import { Environment, type HttpAnswer, type Transport } from "@aenv/sdk";
import type { Dispatcher, Pool } from "undici";
import type { Metadata } from "../hub/versions/environment-version.ts";
import { responseLimits } from "../sandboxes/response-limits.ts";

/** Timeout for each question: a server that is not for agents may leave them unanswered. */
const ASK_MS = 10_000;

const NO_CATALOGUE: Catalogue = { total: 0, functions: [], reward: [], health: [] };

/** What a program offers, as far as it says so: tools at `/mcp`, and functions and rewards as the original's servers list them. */
export async function readProgram(pool: Pool, signal: AbortSignal): Promise<Metadata> {
  const url = "http://localhost";
  const options = { instanceUrl: url, transport: transportOf(pool, signal), skipHealthCheck: true, timeoutMs: ASK_MS, maxRetries: 0 };
  const [tools, functions] = await Promise.all([
    Environment.use("program", options, (env) => env.listTools()).catch(() => []),
    readFunctions(pool, signal).catch(() => NO_CATALOGUE),
  ]);
  signal.throwIfAborted();
  return {
    tools: tools.map((tool) => ({ ...tool, name: tool.name.slice(tool.name.indexOf("/") + 1) })),
    catalogue: functions,
    taskCount: null,
    keepsStateInModules: true,
  };
}

async function readFunctions(pool: Pool, signal: AbortSignal): Promise<Catalogue> {
  using limit = new TimedSignal(ASK_MS, signal);
  const { body } = await pool.request({ method: "GET", path: "/functions/list", signal: limit.signal });
  const answer: unknown = parseBoundedJson(await readBoundedText(body, { maxBytes: responseLimits.offer }));
  return catalogue.parse(isObject(answer) ? answer.data : null);
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
