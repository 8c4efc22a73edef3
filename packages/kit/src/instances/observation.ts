import type { Task } from "@aenv/contract";
import type { CompiledEnvironment } from "../compile/environment.ts";
import type { SetupContext } from "../definition/definition.ts";

/** The observation of an episode that begins with this state, or of one of its roles: from the environment's `observe`, else from the task. */
export function observe(
  { definition }: CompiledEnvironment,
  state: unknown,
  context: SetupContext & { readonly role: string | null },
): unknown {
  return definition.observe === undefined ? textOf(context.task) : definition.observe({ ...context, state });
}

/** Only these fields of a task are shown to the agent. */
function textOf(task: Task | null): string | null {
  const text = task?.instruction ?? task?.prompt;
  return typeof text === "string" ? text : null;
}
