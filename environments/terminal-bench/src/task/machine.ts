import type { Task } from "./model.ts";

/** Why no sandbox can be what a task's environment describes; empty if one can. */
export function machineProblems({ config: { environment }, definition }: Pick<Task, "config" | "definition">): readonly string[] {
  const { os, gpus, tpu } = environment;
  return [
    ...(os === "windows" ? ["it needs Windows containers, and sandboxes run Linux"] : []),
    ...((gpus ?? 0) > 0 ? ["it needs a GPU, which sandboxes do not have"] : []),
    ...(tpu === null ? [] : ["it needs a TPU, which sandboxes do not have"]),
    ...(definition.kind === "none" ? [noDefinition(definition.context)] : []),
  ];
}

export function noDefinition(context: string): string {
  return `no environment is defined: set docker_image, or add a Dockerfile or a docker-compose.yaml to ${context}`;
}
