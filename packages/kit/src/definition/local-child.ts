import type { ChildUse } from "@aenv/contract";
import type { EnvironmentDefinition } from "./definition.ts";

/** A child of an environment that is served without a platform: an entry of `deployConfig.uses`, with the environment itself. */
export interface LocalChild extends Omit<ChildUse, "env"> {
  /** The environment, or the URL at which it is served. */
  readonly environment: LocalEnvironment | { readonly url: string };
}

export interface LocalEnvironment {
  readonly name: string;
  readonly version: string;
  readonly definition: EnvironmentDefinition;
  readonly uses?: readonly LocalChild[];
}
