import type { Task, VerifierEnvironment } from "../task/model.ts";

/** The environment of a separate verifier as a task: its sandbox is opened like that of an agent. Its healthcheck is the agent's only. */
export function verifierTask(task: Task, { config, definition, hasTests }: VerifierEnvironment): Task {
  return {
    ...task,
    shortName: hasTests ? `${task.shortName}--verifier` : task.shortName,
    definition,
    config: { ...task.config, environment: { ...config, healthcheck: null } },
  };
}
