import * as z from "zod";

/** A finished episode's reward: the weighted total and what it was made of. */
export const reward = z.object({
  reward: z.number(),
  components: z.record(z.string(), z.number()),
});
export type Reward = z.infer<typeof reward>;
