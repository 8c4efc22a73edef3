import { type EnvironmentConfig, type Variables, variableKind, variableProblem } from "@aenv/contract";

/**
 * The variables that every instance of an environment has before a request adds its own: those of its `deployConfig`, and which
 * environment it is. What a publisher may not set is left out; publishing such a config is refused.
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
