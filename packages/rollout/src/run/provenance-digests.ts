import { digestOf } from "../journal/digest.ts";
import type { Agent } from "../player/agent.ts";
import type { Limits } from "../player/limits.ts";
import { withoutSecrets } from "./settings.ts";

/** The digests of a provenance are made here only, so that those of a command and those of the service can be compared. */
export function agentDigestOf({ name, settings }: Pick<Agent, "name" | "settings">, limits: Limits): string {
  return digestOf({ name, settings, limits });
}

export function configDigestOf(deployConfig: Readonly<Record<string, unknown>>, variables: Readonly<Record<string, string>>): string {
  return digestOf({ deploy: deployConfig, variables: withoutSecrets(variables) });
}
