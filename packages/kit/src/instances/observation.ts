import type { Task } from "@aenv/contract";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { SetupContext } from "../definition/definition.ts";

/** What the agent sees first in an episode that begins with this state: the environment's own words, else the task's. */
export function observe({ definition }: CompiledEnvironment, state: unknown, context: SetupContext): unknown {
  return definition.observe === undefined ? textOf(context.task) : definition.observe({ ...context, state });
}

/** All other fields of a task are for the trainer only. */
function textOf(task: Task | null): string | null {
  const text = task?.instruction ?? task?.prompt;
  return typeof text === "string" ? text : null;
}
