import { setTimeout as pause } from "node:timers/promises";
import type { Sandbox } from "@aenv/sandbox";
import type { InitConnections } from "../sandboxes/init-connections.ts";
import type { Slots } from "../slots/slots.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";
import type { InstanceRow } from "./row.ts";

export interface RunningCommandsOptions {
  readonly slots: Pick<Slots, "find">;
  readonly tasks: Pick<TaskSandboxes, "of">;
  readonly connections: InitConnections;
  /** Commands that the code of the environment runs in this sandbox. They are part of its calls. */
  readonly ownCommands: (sandboxId: string) => ReadonlySet<number>;
}

/** An init that does not answer for so long runs no commands for anybody. */
const ANSWER_MS = 5_000;

/**
 * Whether commands of clients run in the sandboxes of an instance, also of clients that have disconnected and of servers that have ended. The
 * inits are asked, so nothing has to be remembered.
 */
export class RunningCommands {
  readonly #options: RunningCommandsOptions;

  constructor(options: RunningCommandsOptions) {
    this.#options = options;
  }

  /** Never fails: a sandbox that does not answer has none. One that is frozen had none when it was frozen. */
  async has({ id, slot, isFrozen }: InstanceRow): Promise<boolean> {
    if (slot === null || isFrozen === true) return false;
    const { slots, tasks } = this.#options;
    const own = slot.isOwnSandbox ? await slots.find(slot.sandboxId).catch(() => null) : null;
    const all = own === null ? tasks.of(id) : [own, ...tasks.of(id)];
    return (await Promise.all(all.map((sandbox) => this.#runs(sandbox)))).includes(true);
  }

  async #runs(sandbox: Sandbox): Promise<boolean> {
    if (sandbox.commands === undefined) return false;
    return Promise.race([this.#ask(sandbox).catch(() => false), pause(ANSWER_MS, false, { ref: false })]);
  }

  async #ask(sandbox: Sandbox): Promise<boolean> {
    const { connections, ownCommands } = this.#options;
    const { init, release } = await connections.open(sandbox, AbortSignal.timeout(ANSWER_MS));
    try {
      const listed = await init.listProcesses();
      return listed.some(({ id, isMain, ending }) => isMain === false && ending === null && !ownCommands(sandbox.id).has(id));
    } finally {
      release();
    }
  }
}
