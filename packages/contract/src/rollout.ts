import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { oracleAction } from "./episode.ts";
import { MAX_ROLES, roleName } from "./episode-roles.ts";
import { instanceModels, rolloutModel } from "./model-endpoint.ts";
import { outcome } from "./outcome.ts";
import { taskChoice } from "./session.ts";
import { toolDescriptor } from "./tool.ts";
import { tokenSequence, trajectory } from "./trajectory.ts";
import { turn } from "./turn.ts";

/** Rollouts in one request at most. */
export const MAX_ROLLOUTS = 10_000;

const name = /^[A-Za-z0-9._:-]+$/;
/** The id of a rollout, which is its idempotency key. */
export const rolloutId = z.string().min(1).max(200).regex(name, "may hold letters, digits, '.', '_', ':' and '-' only");
const count = z.number().int().nonnegative();
const limit = z.number().int().positive();

/** Agents that the service plays. Programs are not among them: they would run on the server. */
export const rolloutAgent = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("openai"), options: z.strictObject({}).default({}) }),
  z.strictObject({ kind: z.literal("anthropic"), options: z.strictObject({}).default({}) }),
  z.strictObject({ kind: z.literal("oracle"), options: z.strictObject({}).default({}) }),
  z.strictObject({ kind: z.literal("noop"), options: z.strictObject({}).default({}) }),
  z.strictObject({ kind: z.literal("random"), options: z.strictObject({ calls: limit.max(10_000).default(10) }).default({ calls: 10 }) }),
  z.strictObject({ kind: z.literal("scripted"), options: z.strictObject({ actions: z.array(oracleAction).max(10_000) }) }),
]);
export type RolloutAgent = z.infer<typeof rolloutAgent>;

/** An agent that plays a role. */
export const rolloutPlayer = z.strictObject({
  agent: rolloutAgent.default({ kind: "openai", options: {} }),
  model: rolloutModel.nullish(),
  /** Whether its turns are training data. If absent: a model that is the only player of its role is trained. */
  trainable: z.boolean().optional(),
});
export type RolloutPlayer = z.infer<typeof rolloutPlayer>;

/** Players of one role at most. */
const MAX_PLAYERS = 1_000;

/** One episode to be played for a trainer. */
export const rolloutRequest = z.strictObject({
  id: rolloutId,
  /** `name@version`, or a name or range that is resolved when the request is accepted. */
  environment: z.string().min(1).max(300),
  /** Variables of the instance. */
  variables: z.record(z.string().min(1).max(256), z.string().max(64 * 1024)).default({}),
  /** Absent for an environment without tasks. */
  task: taskChoice.nullish(),
  group: trajectory.shape.group.optional(),
  /** The seed of the episode. The model gets none, unless `sampling` has one: equal seeds would give a group equal samples. */
  seed: z.number().int().default(0),
  agent: rolloutAgent.default({ kind: "openai", options: {} }),
  model: rolloutModel.nullish(),
  /** The models that the environment's code calls, by name, instead of those that it declares. */
  models: instanceModels.optional(),
  /**
   * The players of an environment with roles, instead of `agent` and `model`. Of a list, one player is drawn by the seed: frozen
   * opponents.
   */
  players: z
    .record(roleName, z.union([rolloutPlayer, z.array(rolloutPlayer).min(1).max(MAX_PLAYERS)]))
    .refine((players) => Object.keys(players).length <= MAX_ROLES, `may name ${MAX_ROLES} roles at most`)
    .optional(),
  /** Players exchange their roles, by the seed. */
  rotate: z.boolean().optional(),
  /** If there are roles, each has these limits of its own. */
  limits: z
    .strictObject({
      turns: limit.optional(),
      tool_calls: limit.optional(),
      tokens: limit.optional(),
      seconds: z.number().positive().max(86_400).optional(),
    })
    .default({}),
  /** Arguments of the reward. They are the trainer's: an agent could raise its own score with them. */
  reward_args: z.record(z.string(), z.unknown()).optional(),
  /** Further attempts, each on a fresh instance, after an unscored outcome that is retryable. */
  retries: count.max(10).default(1),
  metadata: z.record(z.string(), z.unknown()).default({}),
});
export type RolloutRequest = z.infer<typeof rolloutRequest>;

export const rolloutsRequest = z.strictObject({
  rollouts: z.array(rolloutRequest).min(1).max(MAX_ROLLOUTS),
  /** The run that the rollouts belong to, for `GET /rollouts?run=`. */
  run: rolloutId.nullish(),
  /** True: results are sent as they come. False: the answer says only what was accepted. */
  stream: z.boolean().default(false),
});
export type RolloutsRequest = z.infer<typeof rolloutsRequest>;

/** A scored or unscored rollout, in the form that trainers read. Token arrays are null unless `capture` is `tokens`. */
export const rolloutResult = trajectory
  .pick({
    id: true,
    run: true,
    attempt: true,
    task: true,
    group: true,
    seed: true,
    reward_args: true,
    stop_reason: true,
    truncated: true,
    capture: true,
    messages: true,
    recording: true,
    roles: true,
    usage: true,
    cost: true,
    earlier_attempts: true,
    timing: true,
    provenance: true,
    metadata: true,
  })
  .extend({
    outcome,
    num_turns: count,
    tool_calls: count,
    turns: z.array(turn.extend({ message: chatMessage.nullable(), reward: z.number().nullable() })),
    sequences: z.array(tokenSequence),
    tools: z.array(toolDescriptor),
  });
export type RolloutResult = z.infer<typeof rolloutResult>;

export const rolloutStates = ["queued", "running", "done"] as const;
export type RolloutState = (typeof rolloutStates)[number];

/** A rollout in a list, and the answer for one that is not done yet. */
export const rolloutStatus = z.object({
  id: rolloutId,
  run: z.string().nullable(),
  status: z.enum(rolloutStates),
  attempt: count,
  created_at: z.iso.datetime(),
});
export type RolloutStatus = z.infer<typeof rolloutStatus>;

export const rolloutsAccepted = z.object({ accepted: z.array(rolloutId) });
export const rolloutPage = z.object({
  rollouts: z.array(rolloutStatus.extend({ result: rolloutResult.partial().nullable() })),
  /** The id to continue `after`; null at the end. */
  next: z.string().nullable(),
});
