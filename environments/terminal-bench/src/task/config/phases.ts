import { list, map, object } from "../../fields/containers.ts";
import { type Field, InvalidValue, optional, type Parsed, refine, withDefault } from "../../fields/field.ts";
import { float, oneOf, text, textOrInt } from "../../fields/scalars.ts";
import { serviceName } from "./artifact.ts";
import { type EnvironmentConfig, environmentField } from "./environment.ts";
import { checkedHosts, type Edition, phaseNetworkFields } from "./network.ts";

/** The timeout of a verification that names none. */
export const DEFAULT_VERIFIER_TIMEOUT_SEC = 600;

const agentShape = (edition: Edition) => ({ ...phaseNetworkFields(edition), timeout_sec: optional(float), user: optional(textOrInt) });

export type AgentConfig = Parsed<ReturnType<typeof agentShape>>;

export function agentField(edition: Edition): Field<AgentConfig> {
  return checkedHosts(object(agentShape(edition)), edition);
}

const collectShape = {
  command: text,
  service: withDefault(serviceName, "main"),
  timeout_sec: withDefault(float, 60),
  user: optional(textOrInt),
};

/** A command that runs after the agent, before artifacts are collected. */
export type CollectHook = Parsed<typeof collectShape>;

export interface VerifierConfig {
  readonly network_mode: AgentConfig["network_mode"];
  readonly allowed_hosts: AgentConfig["allowed_hosts"];
  /** Null if the table does not name one. */
  readonly timeout_sec: number | null;
  readonly env: Readonly<Record<string, string>>;
  readonly user: string | number | null;
  readonly environment_mode: "shared" | "separate" | null;
  readonly environment: EnvironmentConfig | null;
  readonly collect: readonly CollectHook[];
}

export function verifierField(edition: Edition): Field<VerifierConfig> {
  const hooks: Field<readonly CollectHook[]> = edition === "later" ? list(object(collectShape)) : { parse: () => [] };
  const field = object({
    ...phaseNetworkFields(edition),
    // A present key must be a number: null is only the value of a missing one.
    timeout_sec: { parse: float.parse, absent: () => null } as Field<number | null>,
    env: withDefault(map(text), {}),
    user: optional(textOrInt),
    environment_mode: optional(oneOf("shared", "separate")),
    environment: optional(environmentField(edition)),
    collect: withDefault(hooks, []),
  });
  return refine(checkedHosts(field, edition), (verifier, at) => {
    if (verifier.environment_mode === "shared" && verifier.environment !== null) {
      throw new InvalidValue(`${at}.environment`, 'cannot be combined with environment_mode = "shared"');
    }
    return verifier;
  });
}
