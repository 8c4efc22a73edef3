import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { type HostRule, PlatformError, parseRequestId, problemsOf } from "@aenv/contract";
import { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest, fastify, LogController } from "fastify";
import type { z } from "zod";
import type { Access, Caller } from "../access/access.ts";
import type { ShownText } from "../config/shown-text.ts";
import { checkContentLength, readBody } from "../http/body.ts";
import { discardRequest } from "../http/drain.ts";
import { type HttpLimits, limitConnections, serverOptions } from "../http/limits.ts";
import { asksForWebSocket, asksToListen } from "../http/upgrade.ts";
import { type Actor, type Audit, isRefusal } from "../operations/audit.ts";
import type { Traced, Tracing } from "../operations/tracing.ts";
import { sendFailure } from "./failure.ts";
import { parseJson } from "./json-body.ts";
import { type ApiRequest, type ApiRoute, bodyLimits } from "./route.ts";

export interface AppOptions {
  readonly routes: readonly ApiRoute[];
  readonly access: Access;
  readonly hostRule: HostRule;
  readonly logger: FastifyBaseLogger;
  /** Timeout for a small body; see `readBody`. */
  readonly bodyTimeoutMs: number;
  readonly httpLimits: HttpLimits;
  readonly tracing: Tracing;
  readonly audit: Audit;
  /** Removes from messages what clients must not read. */
  readonly shown: ShownText;
  readonly onAnswer: (answer: ApiAnswer) => void;
}

export interface ApiAnswer {
  readonly requestId: string;
  readonly method: string;
  /** The route's template, such as `/env-instance/:id`. */
  readonly route: string;
  /** Set for a route about one instance. */
  readonly instanceId: string | undefined;
  readonly status: number;
  readonly durationMs: number;
}

/** The control port. */
export function createApp(options: AppOptions): FastifyInstance {
  const { requestTimeout = 0, keepAliveTimeout = 0, ...http } = serverOptions(options.httpLimits);
  const app = fastify({
    http: { ...http, shouldUpgradeCallback: (request) => asksForWebSocket(request) || asksToListen(request) },
    requestTimeout,
    keepAliveTimeout,
    loggerInstance: options.logger,
    logController: new LogController({ disableRequestLogging: true }),
    genReqId: (request) => parseRequestId(request.headers["x-request-id"]) ?? crypto.randomUUID(),
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: 512 },
    // The original's clients send bodies with DELETE and empty bodies with a JSON type; both are harmless.
    forceCloseConnections: "idle",
    // A path that cannot be parsed gets the same error envelope as other failures.
    frameworkErrors: (error, request, reply) => sendFailure(error, request, reply, options.shown),
  });
  limitConnections(app.server, options.httpLimits);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", async (request: FastifyRequest, payload: IncomingMessage) => {
    const { one } = request.routeOptions.config;
    // A raw route without a schema reads its body itself.
    if (one === undefined || (one.isRaw === true && one.body === undefined)) return payload;
    const bytes = await readBody(payload, { maxBytes: maxBodyBytesOf(one), timeoutMs: options.bodyTimeoutMs });
    return bytes.length === 0 ? undefined : parseJson(bytes.toString("utf8"), one?.maxBodyFields);
  });
  // Other content types stay streams. Only uploads read them, without holding them in memory.
  app.addContentTypeParser("*", (_request, payload, done) => done(null, payload));
  const traces = new WeakMap<FastifyRequest, Traced>();
  const callers = new WeakMap<FastifyRequest, Caller>();
  const awaitsContinue = new WeakSet<IncomingMessage>();
  // Runs before the body is read, so a refused request costs no memory and no waiting.
  app.addHook("onRequest", async (request, reply) => {
    // After the first read, Node keeps the address even when the connection has closed.
    void request.raw.socket.remoteAddress;
    options.hostRule.check(request.headers, request.raw.rawHeaders);
    options.hostRule.checkPage(request);
    traces.set(request, options.tracing.start(`${request.method} ${request.routeOptions.url ?? "none"}`, request.headers));
    const { one } = request.routeOptions.config;
    if (one === undefined) throw noSuchRoute(request);
    if (one.roles !== null && !hasOwnToken(one, request)) {
      if (!options.access.isOn && one.ownToken)
        throw new PlatformError("access.unauthenticated", `${one.path} needs the server's metricsToken`);
      const caller = await options.access.identify(request.headers.authorization);
      callers.set(request, caller);
      options.access.assertRole(caller, ...one.roles);
    }
    checkContentLength(request.headers["content-length"], maxBodyBytesOf(one));
    if (awaitsContinue.has(request.raw)) reply.raw.writeContinue();
  });
  app.server.on("checkContinue", (request: IncomingMessage, response: ServerResponse) => {
    awaitsContinue.add(request);
    app.routing(request, response);
  });
  app.addHook("onSend", async (request, reply) => {
    // The response may be sent before the whole request has arrived; the rest is discarded in onResponse.
    if (request.raw.complete) return;
    reply.removeHeader("connection");
    reply.raw.shouldKeepAlive = true;
  });
  app.addHook("onResponse", async (request) => discardRequest(request.raw));
  app.addHook("onResponse", async (request, reply) => {
    const route = request.routeOptions.url ?? "none";
    traces.get(request)?.end({ "http.route": route, "http.response.status_code": reply.statusCode }, reply.statusCode >= 500);
    const instanceId = route.startsWith("/env-instance/:id") ? (request.params as { id: string }).id : undefined;
    const { statusCode: status, elapsedTime: durationMs } = reply;
    if (isRefusal(status)) options.audit.refused("control", status, actorOf(request));
    options.onAnswer({ requestId: request.id, method: request.method, route, instanceId, status, durationMs });
  });
  app.setErrorHandler((error, request, reply) => sendFailure(error, request, reply, options.shown));
  app.setNotFoundHandler((request, reply) => sendFailure(noSuchRoute(request), request, reply, options.shown));
  const actorOf = (request: FastifyRequest): Actor => ({
    owner: callers.get(request)?.owner ?? null,
    requestId: request.id,
    client: request.raw.socket.remoteAddress ?? null,
  });
  for (const one of options.routes) {
    register(
      app,
      one,
      (request) => callers.get(request) ?? ANONYMOUS,
      (data, ask) => {
        const subjects = one.audited?.of(data, ask) ?? [];
        if (one.audited !== undefined && subjects.length > 0) options.audit.change(one.audited.event, subjects, actorOf(ask.request));
      },
    );
  }
  return app;
}

declare module "fastify" {
  interface FastifyContextConfig {
    /** Undefined for a path that is not part of the API. */
    readonly one?: ApiRoute;
  }
}

function register(
  app: FastifyInstance,
  one: ApiRoute,
  callerOf: (request: FastifyRequest) => Caller,
  onDone: (data: unknown, ask: ApiRequest<unknown, unknown, unknown>) => void,
): void {
  app.route({
    method: one.method,
    url: one.path,
    config: { one },
    handler: async (request, reply) => {
      const controller = new AbortController();
      reply.raw.once(
        "close",
        () => reply.raw.writableFinished || controller.abort(new PlatformError("request.cancelled", "the client disconnected")),
      );
      const ask = {
        params: parse(one.params, request.params, "path"),
        query: parse(one.query, request.query, "query"),
        body: bodyOf(one, request.body),
        caller: callerOf(request),
        signal: controller.signal,
        request,
        reply,
      };
      const data = await one.handle(ask);
      onDone(data, ask);
      return one.isRaw === true || one.isBare === true ? data : { success: true, code: 0, message: "", data: data ?? null };
    },
  });
}

function bodyOf(one: ApiRoute, body: unknown): unknown {
  if (one.body === undefined) return one.isRaw === true ? body : undefined;
  if (body instanceof Readable) throw new PlatformError("request.invalid", "send the body as JSON, with content-type application/json");
  return parse(one.body, body, "body");
}

function hasOwnToken({ ownToken }: ApiRoute, { headers }: FastifyRequest): boolean {
  const [, token = ""] = /^bearer +(\S+)$/i.exec(headers.authorization?.trim() ?? "") ?? [];
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return Boolean(ownToken) && timingSafeEqual(digest(token), digest(ownToken ?? ""));
}

const ANONYMOUS: Caller = { owner: "", roles: new Set(), tokenId: null, maxInstances: null };

function parse(schema: z.ZodType | undefined, value: unknown, part: string): unknown {
  if (schema === undefined) return undefined;
  const parsed = schema.safeParse(value ?? {});
  if (parsed.success) return parsed.data;
  throw new PlatformError("request.invalid", `Invalid request parameters: ${problemsOf(parsed.error, `the ${part}`)}`);
}

function maxBodyBytesOf({ maxBodyBytes = bodyLimits.none }: ApiRoute): number {
  return maxBodyBytes;
}

function noSuchRoute(request: FastifyRequest): PlatformError {
  return new PlatformError(
    "route.not_found",
    `${request.method} ${pathOf(request)} is not part of this API; /openapi.json lists all routes`,
  );
}

function pathOf(request: FastifyRequest): string {
  const at = request.url.indexOf("?");
  return at < 0 ? request.url : request.url.slice(0, at);
}
