import {
  type Catalogue,
  type CatalogueEntry,
  catalogue,
  type ErrorCode,
  fillPath,
  instanceRoutes,
  isObject,
  isPlatformError,
  parseBoundedJson,
  ReadLimitExceeded,
  type ResetResult,
  type Route,
  sandboxEnvelope,
  type Task,
  taskPage,
} from "@aenv/contract";
import { AnswerLimitError, EnvironmentError, ValidationError } from "../errors/errors.ts";
import { type Failure, readFailure } from "../errors/failure.ts";
import { StatusError, TransportError } from "../errors/http-errors.ts";
import { networkError } from "../errors/network-failure.ts";
import type { RetryRule } from "../errors/retry.ts";
import { describeUnexpected, isGatewayHealth } from "../errors/unexpected-answer.ts";
import { type JsonClient, withQuery } from "../http/json-client.ts";
import { readAnswer } from "../http/read-answer.ts";
import { readReset } from "../platform/records.ts";

export interface SandboxOptions {
  readonly envName: string;
  /** Base URL of the instance's routes. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export interface CallOptions {
  /** Timeout of the call; the environment's `timeoutMs` if absent. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

interface SandboxCall extends CallOptions {
  readonly method: string;
  readonly path: string;
  /** The action, for error messages: `could not ${doing}`. */
  readonly doing: string;
  readonly rule: RetryRule;
  readonly body?: unknown;
  readonly maxRetries?: number;
  /** The code of a 404 whose body has no code. */
  readonly notFound: ErrorCode;
}

const TASKS_PER_PAGE = 500;
/** An environment may return pages of any size, and any number as the total. */
const MAX_TASK_PAGES = 2_000;

/** An instance's plain HTTP routes: functions, reward, health, tasks, state. */
export class SandboxClient {
  readonly #client: JsonClient;
  readonly #options: SandboxOptions;
  /** Cached paths of the functions. */
  #catalogue: Catalogue | null = null;

  constructor(client: JsonClient, options: SandboxOptions) {
    this.#client = client;
    this.#options = options;
  }

  async listFunctions(options: CallOptions = {}): Promise<Catalogue> {
    const data = await this.#callOwnRoute(instanceRoutes.listFunctions, "list the functions", "idempotent", undefined, options);
    return readAnswer(catalogue, data, "the list of functions");
  }

  /** Calls the function at the path and by the method that the environment declares. */
  async callFunction(name: string, args: Readonly<Record<string, unknown>>, options: CallOptions = {}): Promise<unknown> {
    const { endpoint, ...located } = await this.#locate(name, options);
    const method = located.method.toUpperCase();
    const takesBody = method === "POST" || method === "PUT" || method === "PATCH";
    try {
      return await this.#data({
        ...options,
        method,
        path: takesBody ? endpoint : withQuery(endpoint, args),
        doing: `call function '${name}'`,
        rule: method === "GET" ? "idempotent" : "once",
        ...(takesBody && { body: args }),
        notFound: "function.not_found",
      });
    } catch (error) {
      // The environment may have been reloaded with other paths.
      if (isPlatformError(error, "function.not_found", "route.method_not_allowed")) this.#catalogue = null;
      throw error;
    }
  }

  callReward(args: Readonly<Record<string, unknown>>, options: CallOptions = {}): Promise<unknown> {
    const { method, path } = instanceRoutes.reward;
    return this.#data({ ...options, method, path, doing: "call the reward", rule: "once", body: args, notFound: "reward.missing" });
  }

  /** The health check's whole response, also when it is unhealthy. */
  async checkHealth(args: Readonly<Record<string, unknown>>, options: CallOptions = {}): Promise<Record<string, unknown>> {
    const { method, path } = instanceRoutes.health;
    const call: SandboxCall = {
      ...options,
      method,
      path: withQuery(path, args),
      doing: "check the health",
      rule: "idempotent",
      maxRetries: 0,
      notFound: "route.not_found",
    };
    try {
      const body = await this.#send(call);
      if (isObject(body) && !isGatewayHealth(body)) return body;
      throw this.#unexpected(call, body);
    } catch (error) {
      const body = error instanceof StatusError ? tryObject(error.body) : null;
      if (body?.success === true) return body;
      throw this.#explain(call, error);
    }
  }

  /** All pages of the tasks, which together have the limit of one answer. */
  async tasks(split: string | undefined, options: CallOptions = {}): Promise<Task[]> {
    const tasks: Task[] = [];
    const { maxAnswerBytes } = this.#client;
    let length = 0;
    for (let pages = 1; ; pages++) {
      const path = withQuery(instanceRoutes.listTasks.path, { offset: tasks.length, limit: TASKS_PER_PAGE, split });
      const data = await this.#callOwnRoute({ ...instanceRoutes.listTasks, path }, "list the tasks", "idempotent", undefined, options);
      const { items, total } = readAnswer(taskPage, data, "the list of tasks");
      for (const task of items) tasks.push(task);
      if (items.length === 0 || tasks.length >= total) return tasks;
      length += JSON.stringify(items).length;
      const exceeded =
        length > maxAnswerBytes
          ? new ReadLimitExceeded("bytes", maxAnswerBytes)
          : pages === MAX_TASK_PAGES
            ? new ReadLimitExceeded("messages", MAX_TASK_PAGES)
            : null;
      if (exceeded !== null) throw new AnswerLimitError({ method: "GET", url: this.#options.url + path }, exceeded);
    }
  }

  async reset(body: unknown, options: CallOptions = {}): Promise<ResetResult> {
    // Not repeated: a reset that arrives after its repetition would discard an episode that has begun.
    return readReset(await this.#callOwnRoute(instanceRoutes.reset, "reset the instance", "once", body, options));
  }

  snapshot(options: CallOptions = {}): Promise<unknown> {
    return this.#callOwnRoute(instanceRoutes.snapshot, "take a snapshot", "idempotent", {}, options);
  }

  /** A route about the episode. Only those that read are sent again. */
  callEpisode(route: Route, doing: string, body: unknown, options: CallOptions = {}): Promise<unknown> {
    return this.#callOwnRoute(route, doing, route.method === "GET" ? "idempotent" : "once", body, options);
  }

  async restore(snapshot: unknown, options: CallOptions = {}): Promise<void> {
    await this.#callOwnRoute(instanceRoutes.restore, "restore a snapshot", "once", { snapshot }, options);
  }

  /** Looks the function up in the catalogue, which is requested again if it lacks the name. Without a catalogue the original's path is used. */
  async #locate(name: string, options: CallOptions): Promise<{ endpoint: string; method: string }> {
    const byName = (one: CatalogueEntry) => one.name === name;
    const cached = this.#catalogue?.functions.find(byName);
    if (cached !== undefined) return cached;
    let known: Catalogue;
    try {
      known = await this.listFunctions(options);
    } catch (error) {
      if (!isPlatformError(error, "instance.unsupported")) throw error;
      return { endpoint: fillPath(instanceRoutes.callFunction, { name }), method: instanceRoutes.callFunction.method };
    }
    this.#catalogue = known;
    const found = known.functions.find(byName);
    if (found === undefined) throw this.#unknownFunction(name, known);
    // It is appended to the instance's URL: anything but a path could change the host.
    if (!found.endpoint.startsWith("/"))
      throw new ValidationError(`function '${name}' has the endpoint '${found.endpoint}', which is not a path`);
    return found;
  }

  #unknownFunction(name: string, known: Catalogue): EnvironmentError {
    const names = known.functions.map((one) => one.name).join(", ") || "none";
    const { envName } = this.#options;
    return new EnvironmentError(`environment '${envName}' has no function '${name}'; it has: ${names}`, {
      code: "function.not_found",
      envName,
    });
  }

  /** Calls a route that only AEnv's sandboxes have: a 404 means that the server does not support it. */
  #callOwnRoute(route: Route, doing: string, rule: RetryRule, body: unknown, options: CallOptions): Promise<unknown> {
    return this.#data({ ...options, method: route.method, path: route.path, doing, rule, body, notFound: "instance.unsupported" });
  }

  async #data(call: SandboxCall): Promise<unknown> {
    let body: unknown;
    try {
      body = await this.#send(call);
    } catch (error) {
      throw this.#explain(call, error);
    }
    const envelope = sandboxEnvelope.safeParse(body);
    if (!envelope.success) throw this.#unexpected(call, body);
    if (envelope.data.success) return envelope.data.data;
    const failure = readFailure(new StatusError(500, JSON.stringify(body), null));
    throw this.#failed(call, { ...failure, code: failure.isNamed ? failure.code : "function.failed" });
  }

  #send(call: SandboxCall): Promise<unknown> {
    const { url, headers, timeoutMs } = this.#options;
    const limit = call.timeoutMs ?? timeoutMs;
    const deadlineAt = this.#client.clock.now() + limit;
    return this.#client.send({ ...call, url: url + call.path, headers, timeoutMs: limit, deadlineAt });
  }

  /** Turns an error of the transport into an error of the SDK. */
  #explain(call: SandboxCall, error: unknown): unknown {
    if (error instanceof StatusError) {
      const failure = readFailure(error, call.notFound);
      const isMissing = call.notFound === "instance.unsupported" && !failure.isNamed && error.status === 405;
      return this.#failed(call, { ...failure, code: isMissing ? "instance.unsupported" : guessCode(failure, error.status, call) });
    }
    if (!(error instanceof TransportError)) return error;
    return networkError(`could not ${call.doing} of '${this.#options.envName}'`, error, call.rule);
  }

  #failed(call: SandboxCall, failure: Failure): EnvironmentError {
    const { envName } = this.#options;
    const { message, isNamed: _, ...rest } = failure;
    return new EnvironmentError(`could not ${call.doing} of '${envName}': ${message}`, { ...rest, envName });
  }

  #unexpected(call: SandboxCall, body: unknown): EnvironmentError {
    const { envName, url } = this.#options;
    return new EnvironmentError(`could not ${call.doing} of '${envName}': ${describeUnexpected(url, body)}`, {
      code: "network.failed",
      envName,
      retryable: false,
    });
  }
}

/** The original answers 500 for every failure of a function. */
function guessCode(failure: Failure, status: number, call: SandboxCall): ErrorCode {
  if (failure.isNamed || status !== 500) return failure.code;
  if (call.notFound === "instance.unsupported") return "episode.failed";
  if (call.notFound === "function.not_found") return "function.failed";
  return call.notFound === "reward.missing" ? "reward.failed" : failure.code;
}

function tryObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = parseBoundedJson(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
}
