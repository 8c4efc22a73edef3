import { type InstanceModel, nearestName, PlatformError } from "@aenv/contract";
import type { ModelEndpoint } from "./endpoint.ts";
import type { HeldModels } from "./held-models.ts";
import type { ModelPolicy } from "./model-policy.ts";
import { NO_KEY, type StoredModels } from "./stored-model.ts";

export interface InstanceModelsOptions {
  readonly policy: Pick<ModelPolicy, "urlProblem">;
  readonly held: HeldModels;
  /** Reads a secret of an owner. */
  readonly secret: (owner: string, name: string) => Promise<string>;
}

export interface ModelOwner {
  readonly owner: string;
  readonly models?: StoredModels | undefined;
  readonly heldModels?: string | undefined;
}

/** Finds the endpoint of an instance's model for one call, and reads its key. */
export class InstanceModelEndpoints {
  readonly #options: InstanceModelsOptions;

  constructor(options: InstanceModelsOptions) {
    this.#options = options;
  }

  async find({ owner, models = {}, heldModels }: ModelOwner, name: string): Promise<ModelEndpoint> {
    const stored = models[name];
    if (stored === undefined) throw failed(unknownModel(name, Object.keys(models)));
    switch (stored.kind) {
      case "stored":
        return this.#endpoint(stored.model, stored.secret === undefined ? NO_KEY : await this.#key(owner, stored.secret));
      case "held": {
        const held = heldModels === undefined ? undefined : this.#options.held.find(heldModels)?.[name];
        if (held !== undefined) return this.#endpoint(held, held.api_key);
        throw failed(
          `the key of model '${name}' came in a request, and the server that had it in memory is not this one, or has restarted; name a secret in models.${name}.secret instead of a key`,
        );
      }
      case "foreign":
        throw failed(
          `the key of model '${name}' is a secret of the environment's publisher; give your own endpoint in 'models' of the request, for example { "${name}": { "base_url": "...", "name": "...", "secret": "name-of-your-secret" } }`,
        );
    }
  }

  #endpoint(model: Partial<InstanceModel> & Pick<InstanceModel, "base_url" | "name" | "api">, apiKey: string): ModelEndpoint {
    // Policies differ between servers and change between starts.
    const problem = this.#options.policy.urlProblem(new URL(model.base_url));
    if (problem !== null) throw failed(`the model's base URL ${problem}`);
    const { base_url: baseUrl, name, api, sampling = {}, headers = {}, extra_body: extraBody = {}, tokens = "trainer" } = model;
    return { baseUrl, name, api, apiKey, sampling, headers, extraBody, wantsTokens: tokens !== "trainer" && api === "chat" };
  }

  async #key(owner: string, secret: string): Promise<string> {
    try {
      return await this.#options.secret(owner, secret);
    } catch (error) {
      throw failed(error instanceof PlatformError ? error.message : "the secret with the model's key cannot be read");
    }
  }
}

function unknownModel(name: string, known: readonly string[]): string {
  const nearest = nearestName(name, known);
  const hint = nearest === null ? "declare it in deployConfig.models, or give it in 'models' of the request" : `did you mean '${nearest}'?`;
  return `the instance has no model '${name.slice(0, 100)}'; ${hint}`;
}

function failed(message: string): PlatformError {
  return new PlatformError("model.failed", message, { retryable: false });
}
