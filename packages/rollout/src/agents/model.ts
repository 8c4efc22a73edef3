import type { ChatMessage, ToolDescriptor } from "@aenv/contract";
import { readStream, readWhole } from "../models/answer.ts";
import type { ModelApi } from "../models/dialect.ts";
import { dialects } from "../models/dialects.ts";
import { type ModelAnswer, type ModelHttp, RefusedByModel } from "../models/http.ts";
import { hasTokens, noTokens } from "../models/tokens.ts";
import type { AgentMessage, Player, TurnAgent, TurnOptions } from "../player/agent.ts";
import { ModelError } from "../player/failure.ts";
import { LimitReached } from "../player/limits.ts";

/** A model behind an HTTP endpoint. */
export interface Model {
  readonly api: ModelApi;
  /** The path of the API is appended as it is: `https://api.openai.com/v1`, or any other path. */
  readonly baseUrl: string;
  readonly apiKey: string;
  readonly name: string;
  readonly sampling?: Readonly<Record<string, unknown>>;
  /** Fields that the request has beside those of the API. */
  readonly extraBody?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
  readonly streams?: boolean;
  /** Asks the endpoint for token ids and log-probabilities. Without `tokenSupport` it must return them. */
  readonly wantsTokens?: boolean;
  /** Whether an endpoint that may not know tokens refuses a request that asks for them. Shared by the episodes of an endpoint. */
  readonly tokenSupport?: TokenSupport;
  /** False: the episode's seed is not sent to the model. */
  readonly sendsSeed?: boolean;
}

export interface TokenSupport {
  isRefused: boolean;
}

/** A model in the ordinary loop of tool calls. */
export function modelAgent(model: Model, http: ModelHttp): TurnAgent {
  const { api, baseUrl, name, sampling = {}, extraBody = {}, streams = false, wantsTokens = false } = model;
  return {
    name: api === "messages" ? "anthropic" : "openai",
    settings: { api, baseUrl, model: name, sampling, extraBody, streams, wantsTokens },
    begin: ({ tools, seed }) => new ModelPlayer(model, http, tools, seed),
  };
}

/** It keeps of an episode only whether the model has answered: the conversation is given to it each time. */
class ModelPlayer implements Player {
  readonly #model: Model;
  readonly #http: ModelHttp;
  readonly #tools: readonly ToolDescriptor[];
  readonly #seed: number;
  #hasAnswered: boolean;

  constructor(model: Model, http: ModelHttp, tools: readonly ToolDescriptor[], seed: number, hasAnswered = false) {
    this.#model = model;
    this.#http = http;
    this.#tools = tools;
    this.#seed = seed;
    this.#hasAnswered = hasAnswered;
  }

  async next(messages: readonly ChatMessage[], options: TurnOptions): Promise<AgentMessage> {
    try {
      const written = await this.#try(messages, options);
      this.#hasAnswered = true;
      return written;
    } catch (error) {
      if (isTooLong(error)) throw new LimitReached("context_length", error.message);
      if (this.#hasAnswered || !(error instanceof LimitReached && error.stopReason === "time_limit")) throw error;
      // A model that takes long for one of its answers is slow; from one without any answer nothing is known of the agent.
      throw new ModelError(`${this.#model.baseUrl} gave no answer until the agent's time was up`, { retryable: true, cause: error });
    }
  }

  async #try(messages: readonly ChatMessage[], options: TurnOptions): Promise<AgentMessage> {
    const { wantsTokens = false, tokenSupport } = this.#model;
    const asks = wantsTokens && tokenSupport?.isRefused !== true;
    try {
      return await this.#ask(messages, options, asks);
    } catch (error) {
      if (isTooLong(error) || !asks || tokenSupport === undefined || !(error instanceof RefusedByModel)) throw error;
      const written = await this.#ask(messages, options, false);
      tokenSupport.isRefused = true;
      return written;
    }
  }

  async #ask(messages: readonly ChatMessage[], { signal, maxTokens, onDelay }: TurnOptions, wantsTokens: boolean) {
    const { api, baseUrl, apiKey, name, headers = {}, sampling = {}, extraBody = {}, streams = false, sendsSeed = true } = this.#model;
    const dialect = dialects[api];
    const seed = sendsSeed ? this.#seed : undefined;
    const turn = { model: name, messages, tools: this.#tools, seed, maxTokens, sampling, streams, wantsTokens };
    const request = {
      url: baseUrl.replace(/\/$/, "") + dialect.path,
      headers: { ...dialect.headers(apiKey), ...headers },
      body: { ...dialect.body(turn), ...extraBody },
    };
    const read = (body: ModelAnswer) => (streams ? readStream(body, dialect) : readWhole(body, dialect));
    const written = dialect.read(await this.#http.post(request, read, signal, onDelay));
    if (wantsTokens && this.#model.tokenSupport === undefined && !hasTokens(written)) throw noTokens(baseUrl);
    return written;
  }

  copy(seed: number): Player {
    return new ModelPlayer(this.#model, this.#http, this.#tools, seed, this.#hasAnswered);
  }
}

function isTooLong(error: unknown): error is RefusedByModel {
  if (!(error instanceof RefusedByModel) || error.status !== 400) return false;
  return (
    error.code === "context_length_exceeded" ||
    /context length|context window|maximum context|prompt is too long|longer than the model/i.test(error.message)
  );
}
