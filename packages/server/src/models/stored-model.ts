import { type CreateInstanceRequest, type InstanceModel, type InstanceModels, newKey, PlatformError } from "@aenv/contract";
import type { EnvironmentVersion } from "../hub/hub.ts";
import type { ModelPolicy } from "./model-policy.ts";

/** A model of an instance, as its row has it: without a key. */
export type StoredModel =
  | {
      readonly kind: "stored";
      readonly model: Pick<InstanceModel, "base_url" | "name" | "api" | "sampling" | "tokens">;
      /** The name of the owner's secret with the key. */
      readonly secret?: string;
    }
  /** It came with a key or with headers, which are in the memory of the server that was asked. */
  | { readonly kind: "held"; readonly name: string }
  /** Its key is a secret of the publisher, who is not the owner of the instance. */
  | { readonly kind: "foreign"; readonly name: string };

export type StoredModels = Readonly<Record<string, StoredModel>>;

/** The models of a new instance: what its row has, and what is kept in memory. */
export interface RequestedModels {
  readonly stored: StoredModels;
  readonly held: InstanceModels;
  /** Under which `held` is found again, also for forks. It is no key of an endpoint. */
  readonly heldId: string;
}

/** Null if neither the environment nor the request names models. */
export function requestedModels(
  environment: Pick<EnvironmentVersion, "owner" | "config">,
  { models = {} }: Pick<CreateInstanceRequest, "models">,
  owner: string,
  policy: Pick<ModelPolicy, "urlProblem">,
): RequestedModels | null {
  const declared = environment.config.deployConfig?.models ?? {};
  if (Object.keys(declared).length + Object.keys(models).length === 0) return null;
  const stored: Record<string, StoredModel> = {};
  const held: InstanceModels = {};
  for (const [name, { baseUrl, name: model, api = "chat", secret, sampling = {} }] of Object.entries(declared)) {
    const isForeign = secret !== undefined && environment.owner !== owner;
    stored[name] = isForeign
      ? { kind: "foreign", name: model }
      : {
          kind: "stored",
          model: { base_url: baseUrl, name: model, api, sampling, tokens: "trainer" },
          ...(secret !== undefined && { secret }),
        };
  }
  for (const [name, model] of Object.entries(models)) {
    assertValid(name, model, policy);
    const { base_url, name: called, api, sampling, tokens, secret } = model;
    const isHeld = model.api_key !== NO_KEY || Object.keys(model.headers).length + Object.keys(model.extra_body).length > 0;
    if (isHeld) held[name] = model;
    stored[name] = isHeld
      ? { kind: "held", name: called }
      : { kind: "stored", model: { base_url, name: called, api, sampling, tokens }, ...(secret !== undefined && { secret }) };
  }
  return { stored, held, heldId: newKey() };
}

/** The key of an endpoint that needs none. */
export const NO_KEY = "none";

function assertValid(name: string, model: InstanceModel, policy: Pick<ModelPolicy, "urlProblem">): void {
  const refuse = (why: string) => new PlatformError("request.invalid", `models.${name}: ${why}`);
  if (model.secret !== undefined && model.api_key !== NO_KEY) throw refuse("give either secret or api_key");
  if (model.tokens === "service" && model.api !== "chat") throw refuse(`the API '${model.api}' returns no token ids; use 'chat'`);
  const problem = policy.urlProblem(new URL(model.base_url));
  if (problem !== null) throw refuse(`base_url ${problem}`);
}
