import type { ChatMessage, ModelCall, ModelCallAnswer, ResponseFormat, ToolChoice, ToolDescriptor } from "@aenv/contract";

/** A model that the environment declares, as its code calls it. */
export interface ModelHandle {
  /** Its name in `deployConfig.models`. */
  readonly name: string;
  /** Sends a conversation to the model. A model that fails is an error with the code `model.failed`, never an answer. */
  complete(request: CompletionRequest): Promise<Completion>;
}

export interface CompletionRequest {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly ToolDescriptor[];
  readonly toolChoice?: ToolChoice;
  readonly temperature?: number;
  readonly maxTokens?: number;
  /** The model draws its own, if not given. */
  readonly seed?: number;
  readonly responseFormat?: ResponseFormat;
  readonly signal?: AbortSignal | undefined;
}

export interface Completion {
  /** What the model wrote. Send it back unchanged: fields such as `reasoning_content` belong to it. */
  readonly message: ChatMessage;
  /** `stop`, `length`, `tool_calls`, or what else the endpoint says. */
  readonly finishReason: string | null;
  readonly usage: TokenUsage;
}

/** The tokens of one answer; null where the endpoint does not say. */
export interface TokenUsage {
  readonly promptTokens: number | null;
  readonly completionTokens: number | null;
}

/** What answers the calls of models: the platform, or a function in the process that serves the environment. */
export interface ModelCalls {
  call(instanceId: string, name: string, call: ModelCall, signal: AbortSignal | undefined): Promise<ModelCallAnswer>;
}
