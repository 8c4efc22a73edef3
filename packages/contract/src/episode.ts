import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { roleDescriptions, roleName } from "./episode-roles.ts";

/** Whether an episode is over, and why. */
export const episodeStatus = z.object({
  done: z.boolean(),
  reason: z.string().nullable(),
  /** The roles that may act now, none when the episode is over; absent in environments without roles. */
  turn: z.array(roleName).optional(),
});
export type EpisodeStatus = z.infer<typeof episodeStatus>;

/** The key under which the status travels in `_meta` of a tool result. */
export const STATUS_META = "aenv/status";

/** The messages that an agent begins with. */
export const episodePrompt = z.object({ messages: z.array(chatMessage) });
export type EpisodePrompt = z.infer<typeof episodePrompt>;

/** The answer to an agent that speaks instead of calling a tool. */
export const episodeReply = z.object({ messages: z.array(chatMessage), status: episodeStatus });
export type EpisodeReply = z.infer<typeof episodeReply>;

/** `role` is needed in environments with roles, and refused in others. */
export const replyRequest = z.object({ message: chatMessage, role: roleName.optional() });

/** One action of a known solution: a tool call, or words. */
export const oracleAction = z.union([
  z.object({
    tool: z.string(),
    arguments: z.record(z.string(), z.unknown()),
    /** The arguments as JSON text, where the notation of a number matters: `2.0` is not `2` to some environments. */
    arguments_text: z.string().optional(),
  }),
  z.object({ say: z.string() }),
]);
export type OracleAction = z.infer<typeof oracleAction>;

/** Null if the environment knows no solution. */
export const oracleAnswer = z.object({ actions: z.array(oracleAction).nullable() });

export const digestAnswer = z.object({ digest: z.string() });

/** Which of the optional parts of an episode an environment defines. */
export const episodeAbilities = z.object({
  prompt: z.boolean(),
  reply: z.boolean(),
  status: z.boolean(),
  stepRewards: z.boolean(),
  digest: z.boolean(),
  oracle: z.boolean(),
  /** Kits of older versions do not send this one and the next. */
  observation: z.boolean().default(false),
  hear: z.boolean().default(false),
  /** The digest of the reward functions' source, as it was loaded, with their names and weights; absent without rewards. */
  rewardDigest: z.string().optional(),
  /** Whether the environment has the function `episode_artifacts`. */
  artifacts: z.boolean().optional(),
  /** Whether instances of other environments belong to its episodes. */
  children: z.boolean().optional(),
  /** Whether the environment's code may call models, so that the episode has a recording. */
  recording: z.boolean().optional(),
  /** Whether a program stores and restores its whole state by the routes below `/state`, so that it can be forked. */
  snapshot: z.boolean().optional(),
  /** The roles in which several agents act on an instance; null or absent if the environment has none. */
  roles: roleDescriptions.nullish(),
});
export type EpisodeAbilities = z.infer<typeof episodeAbilities>;

/** Those of an environment that defines no part of an episode. */
export const noAbilities: EpisodeAbilities = {
  prompt: false,
  reply: false,
  status: false,
  stepRewards: false,
  digest: false,
  oracle: false,
  observation: false,
  hear: false,
};
