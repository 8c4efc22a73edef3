import {
  type ChatMessage,
  type Conversation,
  isObject,
  problemsOf,
  type ResponseFormat,
  type ToolChoice,
  type ToolDescriptor,
  type Turn,
  toolDescriptor,
} from "@aenv/contract";
import type * as z from "zod";
import type { AgentMessage } from "../player/agent.ts";
import { ModelError } from "../player/failure.ts";

/** The APIs by which models are called. */
export const modelApis = ["chat", "responses", "messages"] as const;
export type ModelApi = (typeof modelApis)[number];

/** What one turn asks of a model. */
export interface TurnRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDescriptor[];
  /** Undefined if the model chooses its own. */
  readonly seed: number | undefined;
  readonly maxTokens: number | undefined;
  /** `temperature`, `max_tokens` and other settings, under the names of the API. */
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly streams: boolean;
  /** Asks for token ids and log-probabilities. */
  readonly wantsTokens: boolean;
  /** What the model should call; its own choice, if absent. */
  readonly toolChoice?: ToolChoice | undefined;
  /** The form of the answer, for APIs that have such a setting. */
  readonly responseFormat?: ResponseFormat | undefined;
}

/** Puts the events of a stream together to the answer that would have come without one. */
export interface StreamReader {
  add(event: Record<string, unknown>): void;
  /** The whole answer; null if the stream broke off before its end. */
  readonly answer: unknown;
}

/** A message that a model wrote, with what its endpoint says about it. */
export type ModelMessage = AgentMessage & { readonly turn: NonNullable<AgentMessage["turn"]> };

/**
 * How a conversation is written for one API, and how its answer is read. What an API needs to see again unchanged, such as reasoning
 * items, is kept in an extra field of the message.
 */
export interface Dialect {
  readonly api: ModelApi;
  readonly path: string;
  headers(apiKey: string): Record<string, string>;
  body(request: TurnRequest): Record<string, unknown>;
  /** The JSON of an answer. Throws if it is none. */
  parse(text: string): unknown;
  read(answer: unknown): ModelMessage;
  /** The conversation and the tools that a request shows to the model; null if it cannot be read. */
  conversationOf(request: Readonly<Record<string, unknown>>): Conversation | null;
  openStream(): StreamReader;
}

/** More than the tool calls or content blocks of any answer; a schema reports a problem for each bad one. */
const MAX_PARTS = 1_000;

/** Checks a model's answer. `parts` are the arrays in it whose elements the schema checks one by one. */
export function readAnswer<T>(schema: z.ZodType<T>, answer: unknown, what: string, parts: readonly unknown[]): T {
  if (parts.some((part) => Array.isArray(part) && part.length > MAX_PARTS))
    throw new ModelError(`the model's answer has more than ${MAX_PARTS} parts`, { retryable: false });
  const parsed = schema.safeParse(answer);
  if (parsed.success) return parsed.data;
  throw new ModelError(`the model's answer is not ${what}: ${problemsOf(parsed.error, "the answer")}`, { retryable: true });
}

/** The smaller of the limit in the sampling settings and the episode's own; undefined without either. */
export function tokenLimit({ sampling, maxTokens }: Pick<TurnRequest, "sampling" | "maxTokens">, field: string): number | undefined {
  const own = sampling[field];
  const limit = Math.min(typeof own === "number" ? own : Number.POSITIVE_INFINITY, maxTokens ?? Number.POSITIVE_INFINITY);
  return Number.isFinite(limit) ? limit : undefined;
}

/** A tool's input schema as every API takes it: an object, even if it has no properties. */
export function parametersOf({ inputSchema }: ToolDescriptor): Record<string, unknown> {
  return { type: "object", properties: {}, ...inputSchema };
}

/** The functions among the tools of a request, as descriptors; tools of other kinds are left out. */
export function offeredTools(tools: unknown, schemaField: string): ToolDescriptor[] {
  if (!Array.isArray(tools)) return [];
  return tools.flatMap((tool) => {
    const named = isObject(tool) && isObject(tool.function) ? tool.function : tool;
    if (!isObject(named)) return [];
    const { name, description, [schemaField]: schema } = named;
    const parsed = toolDescriptor.safeParse({ name, description: description ?? undefined, inputSchema: schema ?? { type: "object" } });
    return parsed.success && schema !== undefined ? [parsed.data] : [];
  });
}

/** Content of another API as that of a chat message: a text where all parts are text, else parts. */
export function chatContent(content: unknown, textTypes: readonly string[]): ChatMessage["content"] {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  const parts = content.filter(isObject).map((part) => {
    const isText = textTypes.includes(String(part.type)) && typeof part.text === "string";
    return isText ? { type: "text", text: String(part.text) } : { ...part, type: String(part.type) };
  });
  return parts.every((part) => part.type === "text") ? parts.map((part) => ("text" in part ? part.text : "")).join("") : parts;
}

/** What an endpoint says it used, whatever was asked for: an alias of a model is resolved there, and settings may be overruled. */
export function reported(model: unknown, settings: Readonly<Record<string, unknown>> = {}): Pick<Turn, "model" | "sampling"> {
  const sampling = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null && value !== undefined));
  return { ...(typeof model === "string" && { model }), ...(Object.keys(sampling).length > 0 && { sampling }) };
}

/** What an endpoint says about its tokens besides their number; what it does not say is left out. */
export function tokenDetails(
  cached: number | null | undefined,
  reasoning: number | null | undefined,
): Pick<Turn, "cached_tokens" | "reasoning_tokens"> {
  return {
    ...(typeof cached === "number" && { cached_tokens: cached }),
    ...(typeof reasoning === "number" && { reasoning_tokens: reasoning }),
  };
}
