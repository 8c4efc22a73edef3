import { type ModelCall, type ModelCallAnswer, nearestName, PlatformError, TimedSignal } from "@aenv/contract";
import { ModelError } from "../player/failure.ts";
import { callModel } from "./call.ts";
import type { ModelApi } from "./dialect.ts";
import { ModelHttp } from "./http.ts";

/** A model that this process calls itself. */
export interface LocalModel {
  readonly baseUrl: string;
  readonly name: string;
  readonly api?: ModelApi | undefined;
  readonly apiKey?: string | undefined;
  readonly sampling?: Readonly<Record<string, unknown>> | undefined;
}

/** Answers the calls of models by an environment that this process serves. */
export interface LocalModels {
  call(instanceId: string, name: string, call: ModelCall, signal: AbortSignal | undefined): Promise<ModelCallAnswer>;
}

const RETRIES = 3;
const TIMEOUT_MS = 10 * 60_000;
const MAX_CALL_MS = 30 * 60_000;

/**
 * Calls models for an environment without a platform.
 *
 * @example
 * await serve(environment, { models: localModels({ main: { baseUrl: "http://127.0.0.1:8000/v1", name: "my-model" } }) });
 */
export function localModels(models: Readonly<Record<string, LocalModel>>): LocalModels {
  const http = new ModelHttp({ retries: RETRIES, timeoutMs: TIMEOUT_MS });
  return {
    call: async (_, name, call, signal) => {
      const { baseUrl, name: model, api = "chat", apiKey = "none", sampling = {} } = models[name] ?? unknownModel(name, models);
      const endpoint = { baseUrl, name: model, api, apiKey, sampling, extraBody: {}, headers: {}, wantsTokens: false };
      using limit = new TimedSignal(MAX_CALL_MS, signal);
      try {
        return await callModel(endpoint, call, http, { signal: limit.signal });
      } catch (error) {
        if (limit.isOver) throw new PlatformError("model.failed", `the model gave no answer within ${MAX_CALL_MS / 60_000} minutes`);
        if (!(error instanceof ModelError)) throw error;
        throw new PlatformError("model.failed", error.message, { retryable: error.retryable, cause: error });
      }
    },
  };
}

function unknownModel(name: string, models: object): never {
  const nearest = nearestName(name, Object.keys(models));
  const hint = nearest === null ? "declare it in deployConfig.models of config.json" : `did you mean '${nearest}'?`;
  throw new PlatformError("model.failed", `there is no model '${name}'; ${hint}`, { retryable: false });
}
