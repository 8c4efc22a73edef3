import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { toolDescriptor } from "./tool.ts";
import { turn } from "./turn.ts";

/** The name by which an environment's code calls a model, such as `main`. */
export const modelName = z.string().regex(/^[a-z][a-z0-9-]{0,62}$/, "must be 1 to 63 lower-case letters, digits and '-', a letter first");

/** The form that an answer must have, for models that can be held to one. */
export const responseFormat = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("json_object") }),
  z.strictObject({ type: z.literal("json_schema"), name: z.string().min(1).max(64), schema: z.record(z.string(), z.unknown()) }),
]);
export type ResponseFormat = z.infer<typeof responseFormat>;

/** What a model should call: what it likes, no tool, some tool, or this one. */
export const toolChoice = z.union([z.enum(["auto", "none", "required"]), z.strictObject({ name: z.string().min(1) })]);
export type ToolChoice = z.infer<typeof toolChoice>;

/** One call of a model by the code of an environment, whichever API the model has. */
export const modelCall = z.strictObject({
  messages: z.array(chatMessage).min(1),
  tools: z.array(toolDescriptor).default([]),
  tool_choice: toolChoice.optional(),
  temperature: z.number().optional(),
  max_tokens: z.number().int().positive().optional(),
  seed: z.number().int().optional(),
  response_format: responseFormat.optional(),
});
export type ModelCall = z.infer<typeof modelCall>;

/** What a model's endpoint says about one of its answers. */
export const modelTurn = turn.omit({ node_id: true, message: true, conversation: true, started_ms: true, duration_ms: true });
export type ModelTurn = z.infer<typeof modelTurn>;

/** The answer to a `modelCall`. */
export const modelCallAnswer = z.object({ message: chatMessage, turn: modelTurn });
export type ModelCallAnswer = z.infer<typeof modelCallAnswer>;
