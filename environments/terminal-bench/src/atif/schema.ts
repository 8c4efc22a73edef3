import { strip } from "@aenv/benchmark";
import { either, list, map, object } from "../fields/containers.ts";
import { before, type Field, InvalidValue, optional, refine } from "../fields/field.ts";
import { anything, bool, float, int, oneOf, text } from "../fields/scalars.ts";
import { isIsoDateTime } from "../python/isoformat.ts";

const extra = optional(map(anything));

const notNegative = refine(int, (value, at) => {
  if (value < 0) throw new InvalidValue(at, `must not be negative, got ${value}`);
  return value;
});

const timestamp = refine(text, (value, at) => {
  if (!isIsoDateTime(value.replaceAll("Z", "+00:00"))) throw new InvalidValue(at, `'${value}' is not a time of ISO 8601`);
  return value;
});

const imageSource = object({ media_type: oneOf("image/jpeg", "image/png", "image/gif", "image/webp"), path: text }, "forbid");

const AUDIO_TYPES = ["wav", "mpeg", "mp4", "aac", "ogg", "flac", "webm", "aiff"] as const;
/** Other names of these types, which are read as them. */
const AUDIO_ALIASES: Readonly<Record<string, (typeof AUDIO_TYPES)[number]>> = {
  ...{ mp3: "mpeg", mpga: "mpeg", "x-mpeg": "mpeg", "x-wav": "wav", wave: "wav", "vnd.wave": "wav" },
  ...{ "x-m4a": "mp4", m4a: "mp4", "x-aac": "aac", "x-flac": "flac", "x-aiff": "aiff" },
};

const audioType = before(
  (value) => {
    const type = typeof value === "string" ? strip(value).toLowerCase() : value;
    return typeof type === "string" ? type.replace(/^audio\/(.*)$/, (_, name: string) => `audio/${AUDIO_ALIASES[name] ?? name}`) : type;
  },
  oneOf(...AUDIO_TYPES.map((name) => `audio/${name}` as const)),
);

const duration = refine(float, (value, at) => {
  if (!(value >= 0)) throw new InvalidValue(at, `must not be negative, got ${value}`);
  return value;
});

const audioSource = object({ media_type: audioType, path: text, duration_sec: optional(duration) }, "forbid");

const part = refine(
  object({ type: oneOf("text", "image", "audio"), text: optional(text), source: optional(either(imageSource, audioSource)) }, "forbid"),
  (value, at) => {
    const [own, other] = value.type === "text" ? [value.text, value.source] : [value.source, value.text];
    const isOther = value.source !== null && !value.source.media_type.startsWith(`${value.type}/`);
    if (own === null || other !== null || isOther) throw new InvalidValue(at, `a part of the type ${value.type} has only its own field`);
    return value;
  },
);

/** A text, or parts with text, images and sounds. */
const content = either(text, list(part));

const toolCall = object({ tool_call_id: text, function_name: text, arguments: map(anything), extra }, "forbid");

const subagentReference = refine(
  object({ trajectory_id: optional(text), trajectory_path: optional(text), session_id: optional(text), extra }, "forbid"),
  (value, at) => {
    if (value.trajectory_id === null && value.trajectory_path === null)
      throw new InvalidValue(at, "needs trajectory_id or trajectory_path");
    return value;
  },
);

const result = object(
  { source_call_id: optional(text), content: optional(content), subagent_trajectory_ref: optional(list(subagentReference)), extra },
  "forbid",
);

const metrics = object(
  {
    prompt_tokens: optional(int),
    completion_tokens: optional(int),
    cached_tokens: optional(int),
    cost_usd: optional(float),
    prompt_token_ids: optional(list(int)),
    completion_token_ids: optional(list(int)),
    logprobs: optional(list(float)),
    extra,
  },
  "forbid",
);

const stepFields = object(
  {
    step_id: refine(int, (value, at) => {
      if (value < 1) throw new InvalidValue(at, `step ids start at 1, got ${value}`);
      return value;
    }),
    source: oneOf("system", "user", "agent"),
    message: content,
    timestamp: optional(timestamp),
    model_name: optional(text),
    reasoning_effort: optional(either(text, float)),
    reasoning_content: optional(text),
    tool_calls: optional(list(toolCall)),
    observation: optional(object({ results: list(result) }, "forbid")),
    metrics: optional(metrics),
    is_copied_context: optional(bool),
    llm_call_count: optional(notNegative),
    extra,
  },
  "forbid",
);

export type AtifStep = ReturnType<typeof stepFields.parse>;

const AGENT_ONLY = ["model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"] as const;

export const step: Field<AtifStep> = refine(stepFields, (value, at) => {
  if (value.source !== "agent") {
    const wrong = AGENT_ONLY.find((key) => value[key] !== null);
    if (wrong !== undefined) throw new InvalidValue(`${at}.${wrong}`, "only steps of the agent have it");
  } else if (value.llm_call_count === 0 && (value.metrics !== null || value.reasoning_content !== null)) {
    throw new InvalidValue(at, "a step without a model call has no metrics and no reasoning_content");
  }
  const calls = new Set(value.tool_calls?.map(({ tool_call_id }) => tool_call_id));
  for (const { source_call_id } of value.observation?.results ?? []) {
    if (source_call_id !== null && !calls.has(source_call_id)) {
      throw new InvalidValue(`${at}.observation`, `its step has no tool call '${source_call_id}'`);
    }
  }
  return value;
});

export const agent = object(
  { name: text, version: text, model_name: optional(text), tool_definitions: optional(list(map(anything))), extra },
  "forbid",
);

export const finalMetrics = object(
  {
    total_prompt_tokens: optional(int),
    total_completion_tokens: optional(int),
    total_cached_tokens: optional(int),
    total_cost_usd: optional(float),
    total_steps: optional(notNegative),
    extra,
  },
  "forbid",
);

export { extra };
