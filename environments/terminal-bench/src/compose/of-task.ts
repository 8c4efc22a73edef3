import { dirname } from "node:path";
import type { ComposeDefinition, Task } from "../task/model.ts";
import { type HostVariables, parseTemplate, resolveTemplates } from "../templates/template.ts";
import { type ComposePlan, planCompose } from "./plan.ts";
import { harborVariables, imageName, tb1Variables } from "./variables.ts";

export type ComposeTask = Task & { readonly definition: ComposeDefinition };

export function isComposeTask(task: Task): task is ComposeTask {
  return task.definition.kind === "compose";
}

/** Whether a task has services beside the agent's, which need sandboxes that find each other. */
export function hasServices(task: Task): task is ComposeTask {
  if (!isComposeTask(task)) return false;
  const { compose, mainService } = task.definition;
  return Object.keys(compose.services).some((name) => name !== mainService);
}

/** The services of a task. Without variables of a host, templates that need one are replaced by nothing. */
export function composeOf({ format, definition, shortName, config }: ComposeTask, host: HostVariables | null): ComposePlan {
  const { env, docker_image, cpus, memory_mb } = config.environment;
  const known = Object.entries(env).filter(([, value]) => host !== null || parseTemplate(value)?.fallback !== null);
  const ours =
    format === "harbor"
      ? harborVariables({
          contextFolder: dirname(definition.file),
          imageName: imageName(shortName),
          prebuiltImage: docker_image,
          cpus,
          memoryMb: memory_mb,
        })
      : tb1Variables(shortName, shortName, "", "");
  return planCompose(definition.compose, definition.mainService, { ...resolveTemplates(Object.fromEntries(known), host ?? {}), ...ours });
}
