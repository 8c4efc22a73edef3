import { TASK_SANDBOX } from "@aenv/contract";
import type { Sandbox } from "@aenv/sandbox";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import type { InstanceRow } from "./row.ts";

/** The sandbox of the environment itself, and that of its task: the second container, or the one that its code has opened. */
export type Container = "main" | "second";

/** An instance as its owner addresses it: `ID`, `ID.main` or `ID.second`. Ids of instances contain no dot. */
export function readAddress(address: string): { readonly id: string; readonly container: Container | null } {
  const [, id, container] = /^(.*)\.(main|second)$/.exec(address) ?? [];
  return id === undefined ? { id: address, container: null } : { id, container: container as Container };
}

/** The sandbox of an instance's task, which is meant unless that of the environment is named; null if the instance has none now. */
export async function findTaskSandbox(
  tasks: Pick<TaskSandboxes, "findNamed">,
  { id, taskSandboxes }: Pick<InstanceRow, "id" | "taskSandboxes">,
  container: Container | null,
): Promise<Sandbox | null> {
  return container === "main" || taskSandboxes === undefined ? null : tasks.findNamed(id, TASK_SANDBOX);
}
