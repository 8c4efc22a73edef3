import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { episodeChildren } from "./children.ts";
import { forfeitReasons, roleName } from "./episode-roles.ts";
import { outcome } from "./outcome.ts";
import { recordedExchange } from "./recording.ts";
import { inlineTask } from "./task.ts";
import { contentBlock, toolDescriptor } from "./tool.ts";
import { turn, weightSpan } from "./turn.ts";

/** The name and version of this schema, in every trajectory. */
export const TRAJECTORY_FORMAT = "aenv.trajectory.v1";

/** Why an episode stopped. The five limits are the agent's own; `truncated` is then true, and the environment still scores. */
export const stopReasons = [
  "done",
  "max_turns",
  "max_tool_calls",
  "max_tokens",
  "context_length",
  "time_limit",
  "empty_reply",
  "error",
] as const;
export type StopReason = (typeof stopReasons)[number];
const limits: ReadonlySet<StopReason> = new Set(["max_turns", "max_tool_calls", "max_tokens", "context_length", "time_limit"]);

export function isTruncated(reason: StopReason): boolean {
  return limits.has(reason);
}

const count = z.number().int().nonnegative();
const milliseconds = z.number().nonnegative();

/** One tool call of an episode and its result. */
export const step = z.object({
  index: count,
  /** Which role made the call; absent in an environment without roles. `message` is then a position in the role's own messages. */
  role: roleName.optional(),
  /** The position in `messages` of the assistant message that made the call; null for an agent without messages. */
  message: count.nullable(),
  call: z.object({ id: z.string(), name: z.string(), arguments: z.record(z.string(), z.unknown()) }),
  result: z.object({ content: z.array(contentBlock), structured_content: z.unknown().optional(), is_error: z.boolean() }),
  started_ms: milliseconds,
  duration_ms: milliseconds,
  /** The reward of this step, where the environment gives step rewards. */
  reward: z.number().nullable(),
  /** The digest of the state after this step, where it was asked for. */
  state_digest: z.string().nullable(),
});
export type Step = z.infer<typeof step>;

/** Tokens that a trainer can use: each sampled token once, with mask 1. */
export const tokenSequence = z.object({
  /** Whose tokens these are; absent in an environment without roles. */
  role: roleName.optional(),
  prompt_length: count,
  token_ids: z.array(count),
  loss_mask: z.array(z.union([z.literal(0), z.literal(1)])),
  logprobs: z.array(z.number().max(0)),
  weight_versions: z.array(weightSpan),
  turns: z.array(z.string()),
});
export type TokenSequence = z.infer<typeof tokenSequence>;

/** What made a trajectory: enough to run it again, or to say what has changed since. */
export const provenance = z.looseObject({
  environment: z.string(),
  /** The digest of the bundle or image. */
  environment_digest: z.string().nullable(),
  tools_digest: z.string().nullable(),
  /** Digest of the source of the reward functions as it was loaded. Bundling may rename what is in it. `environment_digest` covers what they call. */
  reward_digest: z.string().nullish(),
  /** Digest of the environment's deploy config and the variables of its instances, secrets left out. */
  config_digest: z.string().nullish(),
  agent: z.string(),
  /** Digest of the agent's name, settings and limits. */
  agent_digest: z.string().nullable(),
  /** What changes what the agent does, never a secret. */
  agent_settings: z.record(z.string(), z.unknown()).nullish(),
  model: z.string().nullable(),
  engine: z.string().nullable(),
  isolation: z.string().nullable(),
  server_version: z.string().nullable(),
  /** The instances of other environments that belonged to the episode; absent without any. */
  children: episodeChildren.optional(),
  client_version: z.string(),
});
export type Provenance = z.infer<typeof provenance>;

/**
 * Cached tokens are part of the prompt tokens, reasoning tokens part of the completion tokens. Null if the endpoint did not say it of each
 * turn: a sum without some of them would look like a small number.
 */
export const usage = z.object({
  prompt_tokens: count.nullable(),
  completion_tokens: count.nullable(),
  cached_tokens: count,
  reasoning_tokens: count.optional(),
});
export type Usage = z.infer<typeof usage>;

export const earlierAttempts = z.object({ attempts: count, usage, cost: z.number().nonnegative().nullable() });
export type EarlierAttempts = z.infer<typeof earlierAttempts>;

/** A conversation with a model, and the tools that the model was offered in it. */
export const conversation = z.object({ messages: z.array(chatMessage), tools: z.array(toolDescriptor) });
export type Conversation = z.infer<typeof conversation>;

/** What one role of an episode saw, and how the episode ended for it. */
export const trajectoryRole = z.object({
  /** The name under which its player was given: another one than the role if players exchange their roles. */
  player: z.string(),
  agent: z.string(),
  agent_settings: z.record(z.string(), z.unknown()).nullish(),
  model: z.string().nullable(),
  /** Whether its turns are training data. Those of a frozen opponent are not. */
  trainable: z.boolean(),
  messages: z.array(chatMessage),
  tools: z.array(toolDescriptor),
  /** The tools that its program offered to the model in `messages`; absent if its requests were not seen. */
  offered_tools: z.array(toolDescriptor).optional(),
  conversations: z.array(conversation).optional(),
  outcome,
  /** Why the role stopped. `done` also if it was another role that ended the episode. */
  stop_reason: z.enum(stopReasons),
  truncated: z.boolean(),
  /** Set if its agent gave up, and why. */
  forfeit: z.enum(forfeitReasons).optional(),
  usage,
  cost: z.number().nonnegative().nullable(),
});
export type TrajectoryRole = z.infer<typeof trajectoryRole>;

/** One episode: what happened in it, how it ended, and what made it. */
export const trajectory = z.object({
  format: z.literal(TRAJECTORY_FORMAT),
  id: z.string(),
  run: z.string().nullable(),
  /** How many attempts came before this one. */
  attempt: count,
  task: z.object({
    id: z.string().nullable(),
    split: z.string().nullable(),
    index: count.nullable(),
    /** A task that is not listed: what the trainer gave to the environment, which chose the id. */
    inline: inlineTask.optional(),
  }),
  /** The samples of one task belong to one group. */
  group: z.object({ id: z.string(), index: count, size: count }).nullable(),
  /** What a fork continues: the trajectory and the number of its steps, messages and turns that come before what is stored here. */
  parent: z.object({ id: z.string(), steps: count, messages: count, turns: count }).nullable(),
  seed: z.number().int(),
  /** Empty if the environment has roles: each of them has its own messages. */
  messages: z.array(chatMessage),
  /** The environment's tools. With roles, those of all of them together. */
  tools: z.array(toolDescriptor),
  /** What each role saw, by role, if the environment has roles. Steps and turns are one list, in the order in which they happened. */
  roles: z.record(roleName, trajectoryRole).optional(),
  /** The tools that a program offered to its model in `messages`; absent if its requests were not seen. */
  offered_tools: z.array(toolDescriptor).optional(),
  /** Conversations of a program beside `messages`: those of its helpers, and those that it went on with in other words. */
  conversations: z.array(conversation).optional(),
  steps: z.array(step),
  turns: z.array(turn),
  /**
   * The calls of models by the environment's own code, such as those of a simulated user or a judge. They are no part of what the agent
   * did. Absent if its code calls no models.
   */
  recording: z.array(recordedExchange).optional(),
  /** The arguments that the trainer gave to the reward; absent if there were none. */
  reward_args: z.record(z.string(), z.unknown()).optional(),
  outcome,
  stop_reason: z.enum(stopReasons),
  truncated: z.boolean(),
  /** What the turns hold: token ids with log-probabilities, log-probabilities alone, or text. */
  capture: z.enum(["tokens", "logprobs", "text"]),
  usage,
  /** In the currency of the prices, normally US dollars; null where no price or no usage is known. */
  cost: z.number().nonnegative().nullable(),
  /** What the attempts before this one used, which were unscored and tried again. Absent if none is known. */
  earlier_attempts: earlierAttempts.optional(),
  timing: z.object({
    started_at: z.iso.datetime(),
    total_ms: milliseconds,
    start_ms: milliseconds,
    reset_ms: milliseconds,
    model_ms: milliseconds,
    tools_ms: milliseconds,
    score_ms: milliseconds,
  }),
  provenance,
  metadata: z.record(z.string(), z.unknown()),
});
export type Trajectory = z.infer<typeof trajectory>;
