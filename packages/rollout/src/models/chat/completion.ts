import { chatMessage, isObject, type WeightSpan, weightSpan } from "@aenv/contract";
import * as z from "zod";
import { ModelError } from "../../player/failure.ts";
import { type ModelMessage, readAnswer, reported, tokenDetails } from "../dialect.ts";

// Checked as a whole: a schema for each element would report a problem for each of a hundred thousand bad ones.
const ids = z.custom<number[]>(
  (value) => Array.isArray(value) && value.every((id) => Number.isInteger(id) && id >= 0),
  "must be token ids",
);
const perChoice = z.union([ids.transform((only) => [only]), z.array(ids)]);
const scores = z.custom<{ logprob: number }[]>(
  (value) => Array.isArray(value) && value.every((one) => isObject(one) && typeof one.logprob === "number"),
  "must be log-probabilities",
);
const logprobs = z.looseObject({ content: scores.nullish() });
const metadata = z.looseObject({
  weight_version: z.union([z.string(), z.number()]).nullish(),
  weight_versions: z.array(weightSpan).nullish(),
});

/** A chat completion, with the fields that vLLM and SGLang add for tokens. */
const completion = z.looseObject({
  id: z.string().nullish(),
  choices: z
    .array(
      z.looseObject({
        message: z.preprocess(withoutNullCalls, chatMessage.extend({ role: z.literal("assistant") })),
        finish_reason: z.string().nullish(),
        logprobs: logprobs.nullish(),
        /** SGLang. */
        prompt_token_ids: ids.nullish(),
        response_token_ids: ids.nullish(),
        /** vLLM. */
        token_ids: ids.nullish(),
      }),
    )
    .min(1),
  /** vLLM. */
  prompt_token_ids: ids.nullish(),
  /** SGLang, also at the end of a stream: ids of the prompt and of each choice. */
  sglext: z.looseObject({ input_ids: perChoice.nullish(), output_ids: perChoice.nullish() }).nullish(),
  metadata: metadata.nullish(),
  usage: z
    .looseObject({
      prompt_tokens: z.number().nullish(),
      completion_tokens: z.number().nullish(),
      prompt_tokens_details: z.looseObject({ cached_tokens: z.number().nullish() }).nullish(),
      completion_tokens_details: z.looseObject({ reasoning_tokens: z.number().nullish() }).nullish(),
    })
    .nullish(),
});

/** Only the first choice is used, so the others are not checked. */
function withFirstChoice(value: unknown): unknown {
  return isObject(value) && Array.isArray(value.choices) ? { ...value, choices: value.choices.slice(0, 1) } : value;
}

function partsOf(answer: unknown): unknown[] {
  const [choice] = isObject(answer) && Array.isArray(answer.choices) ? answer.choices : [];
  return isObject(choice) && isObject(choice.message) ? [choice.message.content, choice.message.tool_calls] : [];
}

/** The message and the turn of a chat completion, whichever engine wrote it. */
export function readCompletion(value: unknown): ModelMessage {
  const answer = withFirstChoice(value);
  const checked = readAnswer(completion, answer, "a chat completion", partsOf(answer));
  const { id, model, choices, usage, metadata: about, sglext, prompt_token_ids: prompt } = checked;
  const [choice] = choices;
  if (choice === undefined) throw new ModelError("the model's answer has no choice", { retryable: true });
  // SGLang, when it is stopped or its weights are replaced: what there is of the answer is not the model's whole answer.
  if (choice.finish_reason === "abort") throw new ModelError("the engine aborted the model's answer", { retryable: true });
  const promptIds = prompt ?? choice.prompt_token_ids ?? sglext?.input_ids?.[0] ?? null;
  const completionIds = choice.token_ids ?? choice.response_token_ids ?? sglext?.output_ids?.[0] ?? null;
  const values = choice.logprobs?.content?.map(({ logprob }) => clamp(logprob)) ?? null;
  if (completionIds !== null && values !== null && completionIds.length !== values.length) {
    throw new ModelError(`the model's answer has ${completionIds.length} tokens but ${values.length} log-probabilities`, {
      retryable: false,
    });
  }
  return {
    message: choice.message,
    turn: {
      completion_id: id ?? null,
      finish_reason: choice.finish_reason ?? null,
      ...reported(model),
      prompt_token_ids: promptIds,
      completion_token_ids: completionIds,
      logprobs: values,
      weight_versions: weightsOf(about, completionIds?.length ?? 0),
      prompt_tokens: usage?.prompt_tokens ?? promptIds?.length ?? null,
      completion_tokens: usage?.completion_tokens ?? completionIds?.length ?? null,
      ...tokenDetails(usage?.prompt_tokens_details?.cached_tokens, usage?.completion_tokens_details?.reasoning_tokens),
    },
  };
}

/** vLLM and AReaL write `tool_calls: null` where there is none, which no API takes back. */
function withoutNullCalls(message: unknown): unknown {
  if (!isObject(message) || message.tool_calls !== null) return message;
  const { tool_calls: _, ...rest } = message;
  return rest;
}

function weightsOf(about: z.infer<typeof metadata> | null | undefined, length: number): WeightSpan[] {
  if (about?.weight_versions) return about.weight_versions;
  const version = about?.weight_version;
  return version === null || version === undefined ? [] : [{ version: String(version), start: 0, end: length }];
}

/** Engines round a certain token's log-probability to slightly more than 0. */
function clamp(logprob: number): number {
  return Math.min(0, logprob);
}
