import { type EnvironmentConfig, type Variables, variableKind, variableProblem } from "@aenv/contract";

/**
 * The variables of every instance of an environment: those of its `deployConfig`, its name and its version. A request may add others.
 * Variables that a publisher may not set are left out; publishing such a config is refused.
 */
export function ownVariables(environment: {
  readonly name: string;
  readonly version: string;
  readonly config: EnvironmentConfig;
}): Variables {
  const { environmentVariables, environment_variables: variables } = environment.config.deployConfig ?? {};
  const own: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...environmentVariables, ...variables })) {
    if (variableKind(name) !== "identity" && variableProblem(name, value, "publisher") === null) own[name] = value;
  }
  return { ...own, envNAME: environment.name, envversion: environment.version };
}
