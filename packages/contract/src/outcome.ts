import * as z from "zod";
import { reward } from "./reward.ts";

/** Where a failure that left an episode without a score came from. */
export const unscoredCauses = ["sandbox", "environment", "model", "agent", "timeout", "cancelled"] as const;
export type UnscoredCause = (typeof unscoredCauses)[number];

/** What the episode was doing when it failed. */
export const episodeStages = ["start", "reset", "play", "score", "close"] as const;
export type EpisodeStage = (typeof episodeStages)[number];

/** How an episode ended. A failure of the platform is `unscored`; nothing turns it into a number. */
export const outcome = z.discriminatedUnion("kind", [
  reward.extend({ kind: z.literal("scored") }),
  z.object({
    kind: z.literal("unscored"),
    cause: z.enum(unscoredCauses),
    stage: z.enum(episodeStages),
    retryable: z.boolean(),
    message: z.string(),
  }),
]);
export type Outcome = z.infer<typeof outcome>;
export type Scored = Extract<Outcome, { kind: "scored" }>;
export type Unscored = Extract<Outcome, { kind: "unscored" }>;
