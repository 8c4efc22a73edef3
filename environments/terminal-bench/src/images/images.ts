import { join } from "node:path";
import { taskChecksum } from "../checksum/tree-hash.ts";
import { imageName } from "../compose/variables.ts";
import type { EnvironmentConfig } from "../task/config/environment.ts";
import { TaskError } from "../task/error.ts";
import { isFile } from "../task/files.ts";
import type { Task } from "../task/model.ts";
import { planTask } from "../trial/plan.ts";

/** An image that a task needs. */
export interface TaskImage {
  readonly image: string;
  /** How it is built; null if it can only be pulled. */
  readonly build: { readonly context: string; readonly dockerfile: string } | null;
}

/** The image of the agent's sandbox. `prefix` is where built images are, such as `registry.example.com/team/`. */
export async function agentImage({ definition, shortName, folder }: Task, prefix: string): Promise<TaskImage> {
  switch (definition.kind) {
    case "image":
      return { image: definition.image, build: null };
    case "dockerfile": {
      const image = `${prefix}${imageName(shortName)}:${await tagOf(definition.context)}`;
      return { image, build: { context: definition.context, dockerfile: join(definition.context, definition.dockerfile) } };
    }
    case "compose":
      throw new TaskError(folder, COMPOSE);
  }
}

export const COMPOSE =
  "its environment is a compose file with services or options that one sandbox does not have, and no engine of the platform runs compose";

/** The image of a separate verifier. */
export async function verifierImage(
  { shortName, folder }: Pick<Task, "shortName" | "folder">,
  config: EnvironmentConfig,
  context: string,
  prefix: string,
): Promise<TaskImage> {
  if (config.docker_image !== null) return { image: config.docker_image, build: null };
  const dockerfile = join(context, "Dockerfile");
  if (!(await isFile(dockerfile)))
    throw new TaskError(
      folder,
      `its verifier runs in an environment of its own, which needs ${dockerfile} or verifier.environment.docker_image`,
    );
  return { image: `${prefix}${imageName(`${shortName}--verifier`)}:${await tagOf(context)}`, build: { context, dockerfile } };
}

/** All images of a task: of the agent, and of verifiers with an environment of their own. */
export async function imagesOfTask(task: Task, prefix: string): Promise<readonly TaskImage[]> {
  const found = new Map<string, TaskImage>();
  const add = (image: TaskImage) => found.set(image.image, image);
  add(await agentImage(task, prefix));
  for (const { verifier } of planTask(task))
    if (verifier.environment !== null) add(await verifierImage(task, verifier.environment, verifier.contextFolder, prefix));
  return [...found.values()];
}

/** An image with this tag was built from exactly these files. */
async function tagOf(context: string): Promise<string> {
  return (await taskChecksum(context)).slice(0, 16);
}
