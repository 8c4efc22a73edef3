import { PlatformError } from "@aenv/contract";
import type { ReachedLimit, RefusedConnection } from "@aenv/sandbox";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import type { InstanceTable } from "./instance-table.ts";
import { withEvent } from "./row.ts";

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
    const task = this.#tasks.instanceOf(sandboxId);
    const row = task === null ? null : await this.#table.find(task);
    const field = task === null ? "deployConfig.egress" : "deployConfig.taskSandboxes.egress";
    for (const { id, events } of row === null ? await this.#table.inSandbox(sandboxId) : [row]) {
      if (events.filter(({ what }) => what.startsWith(REFUSED)).length >= REFUSALS_KEPT) continue;
      const what = `${REFUSED} to ${to}; the environment allows it with ${field}`;
      await this.#table.change(id, (latest, now) => withEvent(latest, what, now));
    }
  }

  async reachedLimit({ sandboxId, reason }: ReachedLimit): Promise<void> {
    for (const { id } of await this.#table.inSandbox(sandboxId))
      await this.#table.change(id, (row, now) => withEvent(row, `limit: ${reason}`, now));
  }
}
