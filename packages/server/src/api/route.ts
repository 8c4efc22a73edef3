import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Caller, Role } from "../access/access.ts";
import type { Change } from "../operations/audit.ts";

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
  /** The data of the answer's envelope; of a route that answers by itself, all of it. */
  readonly answer: z.ZodType | RawAnswer;
  /** The largest body that is read; `bodyLimits.none` unless declared. */
  readonly maxBodyBytes?: number;
  /** What the audit trail says once it is done: to which names or ids. */
  readonly audited?: { readonly event: Change; of(data: unknown, ask: Ask<z.infer<P>, z.infer<Q>, z.infer<B>>): readonly string[] };
  /** Answers by itself: a stream, a file, a text. */
  readonly isRaw?: boolean;
  handle(ask: Ask<z.infer<P>, z.infer<Q>, z.infer<B>>): Promise<unknown>;
}

/** An answer without an envelope of ours. */
export interface RawAnswer {
  readonly type: string;
  /** What it is instead if the request says so. */
  readonly alsoType?: string;
  readonly schema?: z.ZodType;
}

/** The answer of a route that sends an envelope by itself. */
export function enveloped(data: z.ZodType): RawAnswer {
  return { type: "application/json", schema: z.object({ success: z.literal(true), code: z.literal(0), message: z.string(), data }) };
}

const KIBIBYTE = 1_024;

/** How large the bodies of a kind of route may be. */
export const bodyLimits = {
  /** Routes that read no body; the original's clients send small ones even so. */
  none: 16 * KIBIBYTE,
  /** A few fields. */
  fields: 64 * KIBIBYTE,
  /** Up to 256 KiB of variables, with room for JSON's escapes. */
  variables: 2 * KIBIBYTE ** 2,
  /** A config.json, which may hold 1 MiB, with room for JSON's escapes. */
  config: 4 * KIBIBYTE ** 2,
  /** A snapshot is a whole state, and a batch holds up to 1,000 requests. */
  snapshot: 64 * KIBIBYTE ** 2,
  /** An archive; it is streamed to disk and never held in memory. */
  archive: 512 * KIBIBYTE ** 2,
} as const;

/** Keeps a route's own types while it is written, and lets routes stand in one list. */
export function route<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(one: ApiRoute<P, Q, B>): ApiRoute {
  return one as unknown as ApiRoute;
}
