import {
  createSessionRequest,
  listedTasks,
  type SessionStart,
  scoreSessionRequest,
  sessionAction,
  sessionScore,
  sessionStart,
  sessionStep,
  sessionRoutes as table,
} from "@aenv/contract";
import { type ApiRoute, bare, bodyLimits, endpointOf, route } from "@aenv/server/trainer-services";
import { z } from "zod";
import type { Sessions } from "./sessions.ts";
import type { Tasks } from "./tasks.ts";

export interface SessionRouteOptions {
  readonly sessions: Sessions;
  readonly tasks: Tasks;
}

const id = z.object({ id: z.string().min(1).max(128) });

/** Trainers in any language read these answers, so they have no envelope. */
export function sessionRoutes({ sessions, tasks }: SessionRouteOptions): ApiRoute[] {
  const roles = ["trainer", "publisher"] as const;
  return [
    route({
      ...endpointOf(table.createSession),
      summary: "Begin an episode that the caller plays step by step",
      answer: bare(sessionStart),
      audited: { event: "session.created", of: (data) => [(data as SessionStart).session] },
      tag: "sessions",
      roles,
      body: createSessionRequest,
      maxBodyBytes: bodyLimits.variables,
      isBare: true,
      handle: async ({ body, caller, signal }) => {
        const { abilities: _, ...start } = await sessions.begin(body, caller, signal);
        return start;
      },
    }),
    route({
      ...endpointOf(table.stepSession),
      summary: "Call a tool or say something; a tool that fails is `is_error`, not an error of the request",
      answer: bare(sessionStep),
      tag: "sessions",
      roles,
      params: id,
      body: sessionAction,
      maxBodyBytes: bodyLimits.snapshot,
      isBare: true,
      handle: ({ params, body, caller }) => sessions.step(params.id, body, caller),
    }),
    route({
      ...endpointOf(table.scoreSession),
      summary: "Score the episode, once: further requests get the same score",
      answer: bare(sessionScore),
      tag: "sessions",
      roles,
      params: id,
      body: scoreSessionRequest,
      maxBodyBytes: bodyLimits.config,
      isBare: true,
      handle: ({ params, body, caller }) => sessions.score(params.id, body, caller),
    }),
    route({
      ...endpointOf(table.deleteSession),
      summary: "End the session and its instance; a session that has ended is no error",
      // 204 without a body.
      answer: { type: "text/plain" },
      audited: { event: "session.deleted", of: (_, { params }) => [params.id] },
      tag: "sessions",
      roles,
      params: id,
      isBare: true,
      handle: async ({ params, caller, reply }) => {
        await sessions.end(params.id, caller);
        reply.code(204);
      },
    }),
    route({
      ...endpointOf(table.listEnvironmentTasks),
      summary: "List the tasks of an environment, a page at a time",
      answer: bare(listedTasks),
      tag: "sessions",
      roles,
      params: z.object({ ref: z.string().min(1).max(512) }),
      query: z.object({
        split: z.string().optional(),
        after: z.string().optional(),
        limit: z.coerce.number().int().min(1).max(1_000).default(100),
      }),
      isBare: true,
      handle: async ({ params, query, caller, signal }) => (await tasks.list(params.ref, caller, signal)).page(query),
    }),
  ];
}
