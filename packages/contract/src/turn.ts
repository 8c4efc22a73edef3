import * as z from "zod";
import { roleName } from "./episode-roles.ts";

const count = z.number().int().nonnegative();
const milliseconds = z.number().nonnegative();

/** The weights that sampled a span of tokens. */
export const weightSpan = z.object({ version: z.string(), start: count, end: count });
export type WeightSpan = z.infer<typeof weightSpan>;

/** One call of the model, in the order of arrival. Token arrays are null unless the endpoint returned them. */
export const turn = z.object({
  node_id: z.string(),
  /** Whose turn it is; absent in an environment without roles. `message` and `conversation` are then positions in what the role has. */
  role: roleName.optional(),
  completion_id: z.string().nullable(),
  finish_reason: z.string().nullable(),
  /** The model as the endpoint names it, often more exactly than the request; absent where it does not say. */
  model: z.string().optional(),
  /** The sampling settings that the endpoint says it used; absent where it does not say. The provenance has those that were asked for. */
  sampling: z.record(z.string(), z.unknown()).optional(),
  /** The position of the message that the model wrote; null if it is not among them. */
  message: count.nullable(),
  /** The position in `conversations` of the conversation that has the message; absent if `messages` has it. */
  conversation: count.optional(),
  prompt_token_ids: z.array(count).nullable(),
  completion_token_ids: z.array(count).nullable(),
  logprobs: z.array(z.number().max(0)).nullable(),
  weight_versions: z.array(weightSpan),
  prompt_tokens: count.nullable(),
  completion_tokens: count.nullable(),
  /** Tokens of the prompt that the endpoint had cached; absent where it does not say. */
  cached_tokens: count.nullish(),
  /** Tokens of the completion that the model spent on reasoning; absent where the endpoint does not say. */
  reasoning_tokens: count.nullish(),
  started_ms: milliseconds,
  duration_ms: milliseconds,
});
export type Turn = z.infer<typeof turn>;
