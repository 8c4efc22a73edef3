import * as z from "zod";

/** A finished episode's reward: the weighted total and what it was made of. */
export const reward = z.object({
  reward: z.number(),
  components: z.record(z.string(), z.number()),
  /** The weight of each component in the total, where the environment states them. */
  weights: z.record(z.string(), z.number()).optional(),
});
export type Reward = z.infer<typeof reward>;
