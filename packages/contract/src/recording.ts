import * as z from "zod";
import { chatMessage } from "./chat.ts";
import { modelCallAnswer, modelName } from "./model-calls.ts";
import { toolDescriptor } from "./tool.ts";

const count = z.number().int().nonnegative();

/** One call of a model by the code of an environment, and its answer. */
export const recordedExchange = z.object({
  /** The child that has called the model, such as `shop/user`; empty for the environment itself. */
  path: z.string(),
  /** The model's name in `deployConfig.models`. */
  model: modelName,
  /** Its place in the recording. */
  n: count,
  /** SHA-256 of the call. Equal calls have equal answers in a replay, in the order in which they came. */
  digest: z.string(),
  /** The conversation begins with so many messages of that of an earlier exchange; null if it begins here. */
  base: z.object({ n: count, messages: count }).nullable(),
  /** The other messages of the conversation. */
  messages: z.array(chatMessage),
  tools: z.array(toolDescriptor),
  /** The tool call of the agent during which the model was called: its place in the episode, from 0. Null if there was none. */
  called_by: count.nullable(),
  answer: modelCallAnswer,
});
export type RecordedExchange = z.infer<typeof recordedExchange>;

export const recordingAnswer = z.object({ exchanges: z.array(recordedExchange) });

/** What a replay needs of an exchange. */
export const recordedAnswer = recordedExchange.pick({ path: true, model: true, digest: true, answer: true });
export type RecordedAnswer = z.infer<typeof recordedAnswer>;

export const recordingModes = ["live", "recorded", "fill"] as const;
export type RecordingMode = (typeof recordingModes)[number];

const MAX_ENTRIES = 100_000;

/**
 * How models answer in an episode. `live`: they are called. `recorded`: only the entries answer, and any other call is an error. `fill`:
 * the entries answer, and other calls go to the models.
 */
export const recordingRequest = z.strictObject({
  mode: z.enum(recordingModes),
  entries: z.array(z.looseObject(recordedAnswer.shape)).max(MAX_ENTRIES).optional(),
});
export type RecordingRequest = z.infer<typeof recordingRequest>;
