import { join } from "node:path";
import { parseCompose } from "../compose/compose.ts";
import { verifierEnvironment, verifierMode } from "../verifier/mode.ts";
import type { StepConfig, TaskConfig } from "./config/config.ts";
import { isEmptyFolder, isFile, isFolder, readText } from "./files.ts";
import { checkInputTree } from "./input-tree.ts";
import type { EnvironmentDefinition, VerifierEnvironment } from "./model.ts";

/** What a container is made from. A prebuilt image is preferred; the files of a folder without a Dockerfile go into the working directory. */
export async function loadDefinition(context: string, image: string | null): Promise<EnvironmentDefinition> {
  const hasDockerfile = await isFile(join(context, "Dockerfile"));
  const file = join(context, "docker-compose.yaml");
  if (await isFile(file)) {
    const built = hasDockerfile ? { context, dockerfile: "Dockerfile" } : null;
    const base = image === null ? built : { image };
    return { kind: "compose", file, compose: parseCompose(await readText(file)), mainService: "main", base };
  }
  if (image !== null) {
    const isBare = hasDockerfile || !(await isFolder(context)) || (await isEmptyFolder(context));
    return { kind: "image", image, files: isBare ? null : context };
  }
  return hasDockerfile ? { kind: "dockerfile", context, dockerfile: "Dockerfile" } : { kind: "none", context };
}

/**
 * The environment of a separate verification; null for a shared one. Its image is that of the step or of the task's verifier, or is built
 * from their folder of tests; without either it is the agent's, into which the tests are copied.
 */
export async function loadVerifierEnvironment(
  folder: string,
  task: TaskConfig,
  step: StepConfig | null,
): Promise<VerifierEnvironment | null> {
  if (verifierMode(task, step) === "shared") return null;
  const { config } = verifierEnvironment(task, step);
  const levels = [
    ...(step === null ? [] : [{ own: step.verifier.environment, tests: join(folder, "steps", step.name, "tests") }]),
    { own: task.verifier.environment, tests: join(folder, "tests") },
  ];
  for (const { own, tests } of levels) {
    const image = own?.docker_image || null;
    if (image !== null)
      return { config: { ...config, docker_image: image }, definition: { kind: "image", image, files: null }, hasTests: true };
    const definition = await loadDefinition(tests, null);
    if (definition.kind === "none") continue;
    await checkInputTree(folder, tests);
    return { config: { ...config, docker_image: null }, definition, hasTests: true };
  }
  const { docker_image, os } = task.environment;
  const context = join(folder, "environment");
  await checkInputTree(folder, context);
  const definition = await loadDefinition(context, docker_image);
  return { config: { ...config, docker_image, os: config.os === "linux" ? os : config.os }, definition, hasTests: false };
}
