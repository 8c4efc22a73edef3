import { PlatformError } from "@aenv/contract";
import type { ReachedLimit, RefusedConnection } from "@aenv/sandbox";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import type { InstanceTable } from "./instance-table.ts";
import { type InstanceRow, withEvent } from "./row.ts";

/** Begins the events of refused connections. Others are kept too, so there are few of them. */
const REFUSED = "egress: refused a connection";
const REFUSALS_KEPT = 5;

/** What happens to a sandbox, told to the owners of its instances. */
export class SandboxEvents {
  readonly #table: InstanceTable;
  readonly #tasks: Pick<TaskSandboxes, "instanceOf">;

  constructor(table: InstanceTable, tasks: Pick<TaskSandboxes, "instanceOf">) {
    this.#table = table;
    this.#tasks = tasks;
  }

  /** Marks the instances of a sandbox that has ended as failed. */
  async exited(sandboxId: string, ids: readonly string[], reason: string): Promise<void> {
    const cause = new PlatformError("sandbox.lost", reason);
    for (const id of ids) await this.#table.fail(id, cause);
    // Other servers may have forked into it.
    await this.#table.retryUntilStored(async () => {
      for await (const { key } of this.#table.rows.each({ index: "sandbox", value: sandboxId })) await this.#table.fail(key, cause);
    });
  }

  /** Says why a connection failed, a few times. */
  async refused({ sandboxId, host, port }: RefusedConnection): Promise<void> {
    const to = port === null ? `the name ${host}` : `${host}:${port}`;
    const { rows, isTask } = await this.#instancesOf(sandboxId);
    const field = isTask ? "deployConfig.taskSandboxes.egress" : "deployConfig.egress";
    for (const { id, events } of rows) {
      if (events.filter(({ what }) => what.startsWith(REFUSED)).length >= REFUSALS_KEPT) continue;
      const what = `${REFUSED} to ${to}; the environment allows it with ${field}`;
      await this.#table.change(id, (latest, now) => withEvent(latest, what, now));
    }
  }

  async reachedLimit({ sandboxId, reason }: ReachedLimit): Promise<void> {
    const { rows, isTask } = await this.#instancesOf(sandboxId);
    const what = `limit: ${reason}${isTask ? ", in a sandbox that its code has opened" : ""}`;
    for (const { id } of rows) await this.#table.change(id, (row, now) => withEvent(row, what, now));
  }

  /** Those in the sandbox, or the one whose code has opened it. */
  async #instancesOf(sandboxId: string): Promise<{ readonly rows: readonly InstanceRow[]; readonly isTask: boolean }> {
    const opener = this.#tasks.instanceOf(sandboxId);
    if (opener === null) return { rows: await this.#table.inSandbox(sandboxId), isTask: false };
    const row = await this.#table.find(opener);
    return { rows: row === null ? [] : [row], isTask: true };
  }
}
