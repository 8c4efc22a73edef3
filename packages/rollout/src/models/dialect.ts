import type { ChatMessage, ToolDescriptor } from "@aenv/contract";
import type { AgentMessage } from "../agents/agent.ts";

/** The APIs by which models are called. */
export type ModelApi = "chat" | "responses" | "messages";

/** What one turn asks of a model. */
export interface TurnRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly ToolDescriptor[];
  readonly seed: number;
  readonly maxTokens: number | undefined;
  /** `temperature`, `max_tokens` and other settings, under the names of the API. */
  readonly sampling: Readonly<Record<string, unknown>>;
  readonly streams: boolean;
  /** Asks for token ids and log-probabilities. */
  readonly wantsTokens: boolean;
}

/** Puts the events of a stream together to the answer that would have come without one. */
export interface StreamReader {
  add(event: Record<string, unknown>): void;
  /** The whole answer; null if the stream broke off before its end. */
  readonly answer: unknown;
}

/**
 * How a conversation is written for one API, and how its answer is read. What an API needs to see again unchanged, such as reasoning
 * items, is kept in an extra field of the message.
 */
export interface Dialect {
  readonly api: ModelApi;
  readonly path: string;
  headers(apiKey: string): Record<string, string>;
  body(request: TurnRequest): Record<string, unknown>;
  read(answer: unknown): AgentMessage;
  openStream(): StreamReader;
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
