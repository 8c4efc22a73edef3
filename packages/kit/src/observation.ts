import { messageOf, PlatformError, type Task } from "@aenv/contract";
import type { Blueprint } from "./blueprint.ts";
import type { SetupContext } from "./definition.ts";

/** What the agent sees first in an episode that begins with this state: the environment's own words, else the task's. */
export async function observe({ name, definition }: Blueprint, state: unknown, context: SetupContext): Promise<unknown> {
  if (definition.observe === undefined) return textOf(context.task);
  try {
    return (await definition.observe({ ...context, state })) ?? null;
  } catch (error) {
    throw new PlatformError("instance.setup_failed", `observe of '${name}' failed: ${messageOf(error)}`, { cause: error });
  }
}

/** All other fields of a task are for the trainer only. */
function textOf(task: Task | null): string | null {
  const text = task?.instruction ?? task?.prompt;
  return typeof text === "string" ? text : null;
}
