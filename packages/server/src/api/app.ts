import { Readable } from "node:stream";
import { errorTable, isPlatformError, messageOf, PlatformError, type VisitorRule } from "@aenv/contract";
import { type FastifyBaseLogger, type FastifyInstance, type FastifyReply, type FastifyRequest, fastify, LogController } from "fastify";
import type { z } from "zod";
import type { Access, Caller } from "../access/access.ts";
import { endRequest } from "../linger.ts";
import type { Traced, Tracing } from "../operations/tracing.ts";
import { limitConnections, type Patience, serverOptions } from "../patience.ts";
import { parseJson } from "./json-body.ts";
import type { ApiRoute } from "./route.ts";

export interface AppOptions {
  readonly routes: readonly ApiRoute[];
  readonly access: Access;
  readonly visitors: VisitorRule;
  readonly logger: FastifyBaseLogger;
  readonly maxBodyBytes: number;
  readonly patience: Patience;
  readonly tracing: Tracing;
  readonly onAnswer: (answer: ApiAnswer) => void;
}

export interface ApiAnswer {
  readonly requestId: string;
  readonly method: string;
  /** As the table has it, with names for what changes. */
  readonly route: string;
  /** Of a route about one instance. */
  readonly instanceId: string | undefined;
  readonly status: number;
  readonly durationMs: number;
}

/** The control port. The only place that knows what an error's status is. */
export function createApp(options: AppOptions): FastifyInstance {
  const { requestTimeout = 0, keepAliveTimeout = 0, ...http } = serverOptions(options.patience);
  const app = fastify({
    http,
    requestTimeout,
    keepAliveTimeout,
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: options.maxBodyBytes,
    genReqId: (request) => requestIdOf(request.headers["x-request-id"]),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    // The original's clients send bodies with DELETE and empty bodies with a JSON type; both are harmless.
    forceCloseConnections: "idle",
    // A path that cannot be read is answered like everything else.
    frameworkErrors: (error, request, reply) => sendError(error, request, reply),
  });
  limitConnections(app.server, options.patience);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_, text, done) => {
    try {
      done(null, text === "" ? undefined : parseJson(text as string));
    } catch (error) {
      done(error as Error);
    }
  });
  // Everything else is a stream for whoever wants one: uploads are never held in memory.
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  app.addHook("onRequest", async (request) => options.visitors.demand(request.headers, request.raw.rawHeaders));
  const traces = new WeakMap<FastifyRequest, Traced>();
  app.addHook("onRequest", async (request) => {
    traces.set(request, options.tracing.start(`${request.method} ${request.routeOptions.url ?? "none"}`, request.headers));
  });
  app.addHook("onSend", async (request, reply) => {
    // Who is answered early is let finish below, also if it wants to hang up then.
    if (request.raw.complete) return;
    reply.removeHeader("connection");
    reply.raw.shouldKeepAlive = true;
  });
  app.addHook("onResponse", async (request) => endRequest(request.raw));
  app.addHook("onResponse", async (request, reply) => {
    const route = request.routeOptions.url ?? "none";
    traces.get(request)?.end({ "http.route": route, "http.response.status_code": reply.statusCode }, reply.statusCode >= 500);
    const instanceId = route.startsWith("/env-instance/:id") ? (request.params as { id: string }).id : undefined;
    const { statusCode: status, elapsedTime: durationMs } = reply;
    options.onAnswer({ requestId: request.id, method: request.method, route, instanceId, status, durationMs });
  });
  app.setErrorHandler((error, request, reply) => sendError(error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    sendError(
      new PlatformError("route.not_found", `${request.method} ${pathOf(request)} is not part of this API; /openapi.json lists what is`),
      request,
      reply,
    );
  });
  for (const one of options.routes) register(app, one, options.access);
  return app;
}

function register(app: FastifyInstance, one: ApiRoute, access: Access): void {
  app.route({
    method: one.method,
    url: one.path,
    handler: async (request, reply) => {
      const caller = one.roles === null ? NOBODY : await access.identify(request.headers.authorization);
      if (one.roles !== null) access.demand(caller, ...one.roles);
      const controller = new AbortController();
      reply.raw.once(
        "close",
        () => reply.raw.writableFinished || controller.abort(new PlatformError("request.cancelled", "the client went away")),
      );
      const data = await one.handle({
        params: parse(one.params, request.params, "path"),
        query: parse(one.query, request.query, "query"),
        body: bodyOf(one, request.body),
        caller,
        signal: controller.signal,
        request,
        reply,
      });
      return one.isRaw === true ? data : { success: true, code: 0, message: "", data: data ?? null };
    },
  });
}

function bodyOf(one: ApiRoute, body: unknown): unknown {
  if (one.body === undefined) return one.isRaw === true ? body : undefined;
  if (body instanceof Readable) throw new PlatformError("request.invalid", "send the body as JSON, with content-type application/json");
  return parse(one.body, body, "body");
}

const NOBODY: Caller = { owner: "", roles: new Set(), tokenId: null, maxInstances: null };

function parse(schema: z.ZodType | undefined, value: unknown, part: string): unknown {
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map((issue) => `${issue.path.join(".") || part}: ${issue.message}`);
  throw new PlatformError("request.invalid", `Invalid request parameters: ${problems.join("; ")}`);
}

function sendError(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const failure = toPlatformError(error, request);
  const { code, message, retryable, details } = failure;
  const status = errorTable[code].status;
  if (status === 429 || status === 503) reply.header("retry-after", String(details.retryAfterSeconds ?? 1));
  void reply.code(status).send({ success: false, code: status, message, data: null, error: { code, retryable, requestId: request.id } });
}

function toPlatformError(error: unknown, request: FastifyRequest): PlatformError {
  if (isPlatformError(error)) return error;
  const code = (error as { code?: string }).code ?? "";
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE")
    return new PlatformError("request.too_large", "the request body is larger than this server allows");
  if (code === "FST_ERR_BAD_URL" || code === "FST_ERR_MAX_PARAM_LENGTH")
    return new PlatformError("route.not_found", `the path cannot be read: ${messageOf(error)}`);
  if (code.startsWith("FST_ERR_CTP")) return new PlatformError("request.invalid", `Invalid request format: ${messageOf(error)}`);
  // What we did not foresee stays in our log: it may hold what others must not read.
  request.log.error({ err: error }, "unexpected failure");
  return new PlatformError("internal", `a fault of ours; the server's log says more under request ${request.id}`);
}

function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === "string" && /^[\w.-]{1,64}$/.test(given) ? given : crypto.randomUUID();
}

function pathOf(request: FastifyRequest): string {
  const at = request.url.indexOf("?");
  return at < 0 ? request.url : request.url.slice(0, at);
}
