import type { EnvironmentVersion } from "../hub/hub.ts";
import type { StoredModels } from "../models/stored-model.ts";
import type { TaskSandboxPolicy } from "../task-sandboxes/policy.ts";
import { isProgram } from "./program.ts";

interface Facts {
  readonly platformLink?: boolean;
  readonly taskSandboxes?: TaskSandboxPolicy | undefined;
  readonly models?: StoredModels | undefined;
}

/**
 * Whether the code of an instance sends requests to the platform: then its process is connected before the instance is created in it. What an
 * environment needs the connection for is declared in its config. A program has no kit, so it sends none.
 */
export function needsLink(environment: EnvironmentVersion, { taskSandboxes, models }: Facts): boolean {
  return !isProgram(environment) && (taskSandboxes !== undefined || models !== undefined || environment.children.length > 0);
}

/** The same for an instance, by its row. Rows of earlier versions do not say so. */
export function hasLink({ platformLink, taskSandboxes }: Facts): boolean {
  return platformLink ?? taskSandboxes !== undefined;
}
