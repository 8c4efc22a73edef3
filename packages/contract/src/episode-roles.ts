import * as z from "zod";
import { outcome } from "./outcome.ts";

/** The name of a role: a part of a path and of a link's key. */
export const roleName = z
  .string()
  .regex(/^[a-z][a-z0-9_-]{0,31}$/, "must be 1 to 32 lower-case letters, digits, '_' and '-', and begin with a letter");

/** Without an environment's own limit, so many agents can play on one instance. */
export const MAX_ROLES = 64;

/** One of the roles in which several agents act on an instance, as trainers see it. */
export const roleDescription = z.object({
  description: z.string().optional(),
  /** How long one turn of the role may take. */
  turnTimeoutMs: z.number().optional(),
  /** So many calls of the role in its turn may fail. */
  maxInvalidMoves: z.number().int().optional(),
});
export type RoleDescription = z.infer<typeof roleDescription>;

/** Roles by name, in the order in which the environment declares them. */
export const roleDescriptions = z.record(roleName, roleDescription);
export type RoleDescriptions = z.infer<typeof roleDescriptions>;

/**
 * The answer of `POST /task/reward` of an environment with roles. `reward` is the environment's reward without a role, else the sum over
 * the roles; null if one of the scores that it is made of is missing.
 */
export const roleRewards = z.object({
  reward: z.number().nullable(),
  components: z.record(z.string(), z.number()),
  weights: z.record(z.string(), z.number()).optional(),
  roles: z.record(roleName, z.object({ outcome })),
});
export type RoleRewards = z.infer<typeof roleRewards>;

/** Why a role gives up: its agent exceeded its time or its invalid moves, or has left. */
export const forfeitReasons = ["time", "invalid_moves", "left"] as const;
export type ForfeitReason = (typeof forfeitReasons)[number];

/** The body of `POST /role/:role/forfeit`. */
export const forfeitRequest = z.object({ reason: z.enum(forfeitReasons).default("left") });

/** True if the environment defines what a role loses that gives up; else the role is unscored. */
export const forfeitAnswer = z.object({ forfeited: z.boolean() });

/** The body of `POST /episode/reward`. */
export const stepRewardRequest = z.object({ role: roleName.optional() });
