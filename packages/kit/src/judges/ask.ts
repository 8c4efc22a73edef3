import { type ChatMessage, PlatformError, parseBoundedJson, textOf } from "@aenv/contract";
import type * as z from "zod";
import type { CompletionRequest, ModelHandle } from "../models/model.ts";

/** How a model is asked. What is left out is the endpoint's choice. */
export interface AskOptions extends Pick<CompletionRequest, "maxTokens" | "seed"> {
  /** 0 by default. */
  readonly temperature?: number;
}

/** How often an answer that cannot be used is asked for again. */
const ASKED_AGAIN = 3;
/** The model sees so many characters of its unusable answer. */
const MAX_QUOTED = 4_000;

/**
 * Asks a model for one JSON object. An answer that does not fit the schema is asked for again, with what is wrong; one that fits is final.
 * Fails with `model.failed` if no answer fits, and if the model itself fails: whoever answers its calls has repeated them.
 */
export async function askForJson<T>(
  model: ModelHandle,
  messages: readonly ChatMessage[],
  schema: z.ZodType<T>,
  { temperature = 0, ...options }: AskOptions,
  signal: AbortSignal | undefined,
): Promise<T> {
  let asked = messages;
  for (let again = 0; ; again++) {
    const { message } = await model.complete({ ...options, temperature, messages: asked, signal });
    const text = textOf(message);
    const read = readJson(text, schema);
    if (read.ok) return read.value;
    if (again === ASKED_AGAIN) {
      throw new PlatformError(
        "model.failed",
        `none of ${ASKED_AGAIN + 1} answers of the model '${model.name}' can be used; the last one ${read.problem}`,
      );
    }
    const complaint = `Your reply cannot be used: it ${read.problem}. Reply with the one JSON object and nothing else.`;
    asked = [...messages, { role: "assistant", content: text.slice(0, MAX_QUOTED) || "(nothing)" }, { role: "user", content: complaint }];
  }
}

type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string };

/** The whole answer must be the object, alone or in one code block: no object is searched for in other words, which may quote somebody. */
function readJson<T>(text: string, schema: z.ZodType<T>): Read<T> {
  const trimmed = text.trim();
  const fenced = /^```(?:json)?\r?\n([\s\S]*?)\r?\n?```$/i.exec(trimmed);
  let value: unknown;
  try {
    value = parseBoundedJson(fenced?.[1] ?? trimmed);
  } catch {
    return { ok: false, problem: "is not JSON" };
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const [issue] = parsed.error.issues;
  const path = issue?.path.join(".") ?? "";
  return { ok: false, problem: `has a wrong ${path === "" ? "form" : `'${path}'`}: ${issue?.message ?? "it does not fit"}` };
}
