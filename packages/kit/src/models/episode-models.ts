import { AsyncLocalStorage } from "node:async_hooks";
import { PlatformError } from "@aenv/contract";
import type { Completion, CompletionRequest, ModelCalls, ModelHandle } from "./model.ts";
import { Recording } from "./recording.ts";

/** The place of the tool call that runs. */
const steps = new AsyncLocalStorage<number>();

/** What a context gives to the environment's code. */
export interface CallModels {
  /** A model that `deployConfig.models` declares. */
  readonly model: (name: string) => ModelHandle;
}

/** The models of one episode, by name. */
export class EpisodeModels {
  readonly #calls: ModelCalls | null;
  readonly #names: readonly string[] | null;
  readonly recording: Recording;
  readonly #common: CallModels;
  instanceId: string;

  /** `names` are the models that there are; null if only the calls can tell. */
  constructor(calls: ModelCalls | null, instanceId: string, names: readonly string[] | null = null, recording = new Recording()) {
    this.#calls = calls;
    this.#names = names;
    this.recording = recording;
    this.instanceId = instanceId;
    this.#common = this.#with(undefined);
  }

  /** Objects for one call, whose signal also ends the requests to models. */
  for(signal?: AbortSignal): CallModels {
    return signal === undefined ? this.#common : this.#with(signal);
  }

  /** Whether its code may call any model. */
  get areThere(): boolean {
    return this.#calls !== null && this.#names?.length !== 0;
  }

  /** Runs a tool call of the agent. Models that are called meanwhile, also by the tools of an inner agent, are called by this step. */
  inStep<T>(run: () => T): T {
    if (!this.areThere || steps.getStore() !== undefined) return run();
    return steps.run(this.recording.nextStep(), run);
  }

  #with(signal: AbortSignal | undefined): CallModels {
    return { model: (name) => ({ name, complete: (request) => this.#complete(name, request, signal) }) };
  }

  async #complete(name: string, request: CompletionRequest, ofCall: AbortSignal | undefined): Promise<Completion> {
    const { messages, tools = [], toolChoice, temperature, maxTokens, seed, responseFormat, signal: own } = request;
    const signal = ofCall === undefined || own === undefined ? (own ?? ofCall) : AbortSignal.any([ofCall, own]);
    const call = {
      messages: [...messages],
      tools: [...tools],
      ...(toolChoice !== undefined && { tool_choice: toolChoice }),
      ...(temperature !== undefined && { temperature }),
      ...(maxTokens !== undefined && { max_tokens: maxTokens }),
      ...(seed !== undefined && { seed }),
      ...(responseFormat !== undefined && { response_format: responseFormat }),
    };
    const ask = async () => this.#require(name).call(this.instanceId, name, call, signal);
    const { message, turn } = await this.recording.answer(name, call, steps.getStore() ?? null, ask);
    const { finish_reason: finishReason, prompt_tokens: promptTokens, completion_tokens: completionTokens } = turn;
    return { message, finishReason, usage: { promptTokens, completionTokens } };
  }

  #require(name: string): ModelCalls {
    if (this.#calls === null) throw new PlatformError("model.failed", NO_MODELS, { retryable: false });
    if (this.#names === null || this.#names.includes(name)) return this.#calls;
    const known = this.#names.length === 0 ? "it has none" : `it has ${this.#names.map((one) => `'${one}'`).join(", ")}`;
    throw new PlatformError(
      "model.failed",
      `this instance has no model '${name}', ${known}; declare it in deployConfig.models of config.json, or give it in 'models' of the request`,
      { retryable: false },
    );
  }
}

const NO_MODELS =
  "this environment has no models here: it is not run by a platform or by 'aenv run'; whoever serves it can pass `models` to serve";
