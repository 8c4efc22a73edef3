import * as z from "zod";
import { reward } from "./reward.ts";

/** How an episode ended. A failure of the platform is `unscored`; nothing turns it into a number. */
export const outcome = z.discriminatedUnion("kind", [
  reward.extend({ kind: z.literal("scored") }),
  z.object({
    kind: z.literal("unscored"),
    cause: z.enum(["sandbox", "environment", "model", "agent", "timeout", "cancelled"]),
    retryable: z.boolean(),
    message: z.string(),
  }),
]);
export type Outcome = z.infer<typeof outcome>;
