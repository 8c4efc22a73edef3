import type { Role } from "@aenv/contract";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Caller } from "../access/access.ts";
import type { Change } from "../operations/audit.ts";

/** A validated request, and its caller. */
export interface ApiRequest<Params, Query, Body> {
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  readonly caller: Caller;
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

/** Method and path of a route in the contract, which the SDK uses too. */
export function endpointOf({ method, path }: { readonly method: Method; readonly path: string }): Pick<ApiRoute, "method" | "path"> {
  return { method, path };
}

export type Method = "GET" | "POST" | "PUT" | "DELETE";

/** A route of the control port: its roles, parameters and response. The server and `/openapi.json` are built from it. */
export interface ApiRoute<P extends z.ZodType = z.ZodType, Q extends z.ZodType = z.ZodType, B extends z.ZodType = z.ZodType> {
  readonly method: Method;
  readonly path: string;
  readonly summary: string;
  readonly tag: "environments" | "instances" | "services" | "snapshots" | "rollouts" | "sessions" | "sandboxes" | "access" | "operations";
  /** Any one of these roles is enough; `null` if no token is needed. */
  readonly roles: readonly Role[] | null;
  /** A token of the server's settings that is enough for this route. Then the route needs a token also where access is off. */
  readonly ownToken?: string | null;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  /** The data in the response's envelope; for a raw route, the whole response. */
  readonly answer: z.ZodType | RawAnswer;
  /** The largest body that is read; `bodyLimits.none` unless declared. */
  readonly maxBodyBytes?: number;
  /** The most fields of a JSON body, in all its objects; unlimited unless declared. */
  readonly maxBodyFields?: number;
  /** The audit event after success, and the names or ids that it is about. */
  readonly audited?: { readonly event: Change; of(data: unknown, ask: ApiRequest<z.infer<P>, z.infer<Q>, z.infer<B>>): readonly string[] };
  /** The response is the data without the envelope. */
  readonly isBare?: boolean;
  /** Sends the response itself: a stream, a file, a text. */
  readonly isRaw?: boolean;
  handle(ask: ApiRequest<z.infer<P>, z.infer<Q>, z.infer<B>>): Promise<unknown>;
}

/** A response without the envelope. */
export interface RawAnswer {
  readonly type: string;
  /** Another content type that the request can choose. */
  readonly alsoType?: string;
  readonly schema?: z.ZodType;
}

/** The response of a bare route. */
export function bare(schema: z.ZodType): RawAnswer {
  return { type: "application/json", schema };
}

/** The response of a raw route that sends the envelope itself. */
export function enveloped(data: z.ZodType): RawAnswer {
  return { type: "application/json", schema: z.object({ success: z.literal(true), code: z.literal(0), message: z.string(), data }) };
}

const KIBIBYTE = 1_024;

/** Limits for request bodies, by kind of route. */
export const bodyLimits = {
  /** Routes that read no body; the original's clients send small ones even so. */
  none: 16 * KIBIBYTE,
  /** A few fields. */
  fields: 64 * KIBIBYTE,
  /** Up to 256 KiB of variables, with space for JSON's escapes. */
  variables: 2 * KIBIBYTE ** 2,
  /** A config.json, which may hold 1 MiB, with space for JSON's escapes. */
  config: 4 * KIBIBYTE ** 2,
  /** A snapshot is a whole state, and a batch holds up to 1,000 requests. */
  snapshot: 64 * KIBIBYTE ** 2,
  /** An archive; it is streamed to disk and never held in memory. */
  archive: 512 * KIBIBYTE ** 2,
  /** A file of a sandbox, or an archive of files; streamed and never held in memory. */
  file: 8 * KIBIBYTE ** 3,
} as const;

/** Checks a route's own types, and returns it as the common type for a list. */
export function route<P extends z.ZodType, Q extends z.ZodType, B extends z.ZodType>(one: ApiRoute<P, Q, B>): ApiRoute {
  return one as ApiRoute;
}
