import type { FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { Caller, Role } from "../access/access.ts";

/** What a handler is given: the parts of the request, checked, and who sent it. */
export interface Ask<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** Fires when the client goes away. */
  readonly signal: AbortSignal;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** One line of the API: what is served, who may ask, what it takes and gives. The server and `/openapi.json` are made from it. */
export interface ApiRoute<P extends z.ZodType = z.ZodType, Q extends z.ZodType = z.ZodType, B extends z.ZodType = z.ZodType> {
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly tag: "environments" | "instances" | "services" | "access" | "operations";
  /** Any one of these roles; `null` for what everybody may ask. */
  readonly roles: readonly Role[] | null;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** Answers by itself: a stream, a file, a text. */
  readonly isRaw?: boolean;
  handle(ask: Ask<z.infer<P>, z.infer<Q>, z.infer<B>>): Promise<unknown>;
}

/** Keeps a route's own types while it is written, and lets routes stand in one list. */
export function route<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(one: ApiRoute<P, Q, B>): ApiRoute {
  return one as unknown as ApiRoute;
}
