import { PlatformError } from "@aenv/contract";
import { callModel, ModelError, type ModelHttp } from "@aenv/rollout";
import type { CallModel } from "@aenv/server/trainer-services";

/** Calls models for the code of environments, over the connections of rollouts. */
export function modelCaller(http: ModelHttp): CallModel {
  return async (endpoint, call, options) => {
    try {
      return await callModel(endpoint, call, http, options);
    } catch (error) {
      if (!(error instanceof ModelError)) throw error;
      throw new PlatformError("model.failed", error.message, { retryable: error.retryable, cause: error });
    }
  };
}
