import { type ModelCall, PlatformError } from "@aenv/contract";
import type { LocalModel, LocalModels } from "@aenv/rollout";
import type { Project } from "../project/project.ts";

type Variables = Readonly<Record<string, string | undefined>>;

/** The models that a project declares, called by this process; undefined if it declares none. Keys are variables of this process. */
export function declaredModels({ config }: Pick<Project, "config">, variables: Variables): LocalModels | undefined {
  const declared = config.deployConfig?.models;
  if (declared === undefined) return undefined;
  const models: Record<string, LocalModel> = {};
  for (const [name, { secret, ...model }] of Object.entries(declared))
    models[name] = { ...model, ...(secret !== undefined && { apiKey: variables[variableOf(secret)] }) };
  let calls: Promise<LocalModels> | undefined;
  return {
    call: async (instanceId: string, name: string, call: ModelCall, signal: AbortSignal | undefined) => {
      const secret = declared[name]?.secret;
      if (secret !== undefined && models[name]?.apiKey === undefined) throw withoutKey(name, secret);
      // Loaded at the first call: the environment starts without it.
      calls ??= import("@aenv/rollout").then(({ localModels }) => localModels(models));
      return (await calls).call(instanceId, name, call, signal);
    },
  };
}

/** `model-key` is MODEL_KEY. */
function variableOf(secret: string): string {
  return secret.toUpperCase().replace(/[^A-Z0-9]/g, "_");
}

function withoutKey(name: string, secret: string): PlatformError {
  const message = `the key of model '${name}' is the secret '${secret}'; set the variable ${variableOf(secret)} to it and start again`;
  return new PlatformError("model.failed", message, { retryable: false });
}
