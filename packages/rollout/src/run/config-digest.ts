import { digestOf } from "../journal/digest.ts";
import { withoutSecrets } from "./settings.ts";

/** It is made here only, so that those of a command and those of the service can be compared. */
export function configDigestOf(deployConfig: Readonly<Record<string, unknown>>, variables: Readonly<Record<string, string>>): string {
  return digestOf({ deploy: deployConfig, variables: withoutSecrets(variables) });
}
