import type { ModelCall, ModelCallAnswer, RolloutModel } from "@aenv/contract";

/** A model's endpoint with its key. It is made for one call and stored nowhere. */
export interface ModelEndpoint extends Pick<RolloutModel, "api" | "name" | "sampling" | "headers"> {
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly extraBody: Readonly<Record<string, unknown>>;
  readonly wantsTokens: boolean;
}

export interface ModelCallOptions {
  readonly signal: AbortSignal;
  /** Called with the size of each piece of the answer. */
  readonly onBytes: (bytes: number) => void;
}

/** Calls an endpoint in the API that it has. A model that fails is `model.failed`. */
export type CallModel = (endpoint: ModelEndpoint, call: ModelCall, options: ModelCallOptions) => Promise<ModelCallAnswer>;
