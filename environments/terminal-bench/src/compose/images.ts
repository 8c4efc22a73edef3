import { createHash } from "node:crypto";
import { dirname, join, resolve } from "node:path";
import { folderChecksum } from "../checksum/tree-hash.ts";
import { TaskError } from "../task/error.ts";
import { machineProblems, noDefinition } from "../task/machine.ts";
import type { Task } from "../task/model.ts";
import type { HostVariables } from "../templates/template.ts";
import { planTask } from "../trial/plan/plan.ts";
import { verifierTask } from "../verifier/environment.ts";
import { type ComposeTask, composeOf, isComposeTask } from "./of-task.ts";
import type { ComposeService } from "./service.ts";
import { imageName } from "./variables.ts";

/** An image that a task needs. */
export interface TaskImage {
  readonly image: string;
  /** How it is built; null if it can only be pulled. */
  readonly build: ImageBuild | null;
}

export interface ImageBuild {
  readonly context: string;
  readonly dockerfile: string;
  readonly buildArgs?: Readonly<Record<string, string>>;
}

/**
 * The image of the agent's sandbox. `prefix` is where built images are, such as `registry.example.com/team/`. That of a compose task may
 * depend on variables of the host.
 */
export async function agentImage(task: Task, prefix: string, host: HostVariables | null = null): Promise<TaskImage> {
  if (isComposeTask(task)) return serviceImage(task, composeOf(task, host).main, prefix);
  const { definition, shortName, folder } = task;
  switch (definition.kind) {
    case "image":
      return { image: definition.image, build: null };
    case "dockerfile": {
      const image = `${prefix}${imageName(shortName)}:${await tagOf(definition.context)}`;
      return { image, build: { context: definition.context, dockerfile: join(definition.context, definition.dockerfile) } };
    }
    case "compose":
      throw new TaskError(folder, "its services have images of their own");
    case "none":
      throw new TaskError(folder, noDefinition(definition.context));
  }
}

/** The image of a service of a compose task. */
export async function serviceImage(task: ComposeTask, service: ComposeService, prefix: string): Promise<TaskImage> {
  const { definition, folder, shortName } = task;
  const { build, image, name } = service;
  const base = name === definition.mainService ? definition.base : null;
  if (build === null) {
    if (base !== null && "image" in base) return { image: base.image, build: null };
    if (base === null && image !== null) return { image, build: null };
    if (base === null) throw new TaskError(folder, `its service '${name}' names neither an image nor a folder to build`);
  }
  const built = build ?? (base as { readonly context: string; readonly dockerfile: string });
  const context = inside(folder, resolve(dirname(definition.file), built.context), name);
  const dockerfile = inside(folder, resolve(context, built.dockerfile), name);
  const buildArgs = build?.args ?? {};
  const isMain = name === definition.mainService;
  const tag = await tagOf(context, Object.keys(buildArgs).length === 0 ? null : buildArgs);
  return {
    image: `${prefix}${imageName(isMain ? shortName : `${shortName}--${name}`)}:${tag}`,
    build: { context, dockerfile, ...(Object.keys(buildArgs).length > 0 && { buildArgs }) },
  };
}

function inside(folder: string, path: string, service: string): string {
  if (path === folder || path.startsWith(`${folder}/`)) return path;
  throw new TaskError(folder, `its service '${service}' is built from ${path}, which is outside of the task`);
}

/** All images of a task: of the agent, and of verifiers with an environment of their own. Empty if nothing can be made from it here. */
export async function imagesOfTask(task: Task, prefix: string): Promise<readonly TaskImage[]> {
  const found = new Map<string, TaskImage>();
  const verifiers = planTask(task).flatMap(({ verifier }) =>
    verifier.environment === null ? [] : [verifierTask(task, verifier.environment)],
  );
  for (const one of [task, ...verifiers]) {
    if (machineProblems(one).length > 0) return [];
    const images = isComposeTask(one)
      ? await Promise.all(composeOf(one, null).order.map((service) => serviceImage(one, service, prefix)))
      : [await agentImage(one, prefix)];
    for (const image of images) found.set(image.image, image);
  }
  return [...found.values()];
}

/** An image with this tag was built from exactly these files and arguments. */
async function tagOf(context: string, args: Readonly<Record<string, string>> | null = null): Promise<string> {
  const checksum = await folderChecksum(context);
  const whole = args === null ? checksum : createHash("sha256").update(checksum).update(JSON.stringify(args)).digest("hex");
  return whole.slice(0, 16);
}
