import { PlatformError } from "@aenv/contract";
import type { Sandbox, SandboxEngine } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import { type Container, findTaskSandbox, readAddress } from "../instances/containers.ts";
import type { Instances } from "../instances/instances.ts";
import { type InstanceRow, slotOf } from "../instances/row.ts";
import type { InitConnections, OpenSandbox } from "../sandboxes/init-connections.ts";
import type { Slot } from "../slots/slot.ts";
import type { Slots } from "../slots/slots.ts";
import type { TaskSandboxes } from "../task-sandboxes/task-sandboxes.ts";

export interface SandboxAccessOptions {
  readonly instances: Instances;
  readonly slots: Slots;
  readonly engine: SandboxEngine;
  readonly connections: InitConnections;
  readonly tasks: TaskSandboxes;
}

/** The sandboxes of instances, for their owners. */
export class SandboxAccess {
  readonly #options: SandboxAccessOptions;

  constructor(options: SandboxAccessOptions) {
    this.#options = options;
  }

  /**
   * The instance counts as used until the release. An instance with a sandbox for its task is addressed there; `ID.main` is the sandbox
   * of its environment, and `ID.second` that of its task.
   */
  async open(address: string, caller: Caller, signal: AbortSignal): Promise<OpenSandbox> {
    const { instances, engine, connections } = this.#options;
    const { id, container } = readAddress(address);
    const row = await instances.get(id, caller);
    const slot = slotOf(row);
    if (engine.commands === undefined) throw unsupported(engine.commandsHint ?? `the engine '${engine.name}' runs no commands`);
    instances.uses.begin(row);
    try {
      const sandbox = await this.#find(row, slot, container);
      if (sandbox.commands === undefined) throw unsupported("this sandbox was started without an init; create a new instance");
      const opened = await connections.open(sandbox, signal);
      return {
        ...opened,
        release: once(() => {
          opened.release();
          instances.uses.end(row);
        }),
      };
    } catch (error) {
      instances.uses.end(row);
      throw error;
    }
  }

  async #find(row: InstanceRow, slot: Slot, container: Container | null): Promise<Sandbox> {
    const { slots, tasks } = this.#options;
    const task = await findTaskSandbox(tasks, row, container);
    if (task !== null) return task;
    if (container === "second") throw unsupported("it has no second container, and its code has opened no sandbox for its task");
    if (!slot.isOwnSandbox) throw unsupported(SHARED);
    const sandbox = await slots.find(slot.sandboxId);
    if (sandbox !== null) return sandbox;
    throw new PlatformError("sandbox.lost", `instance '${row.id}' has no sandbox on this server's machine any more`);
  }
}

const SHARED =
  'instances of this environment share a process, so none has a sandbox of its own; set deployConfig.isolation to "instance" and publish a new version';

function unsupported(why: string): PlatformError {
  return new PlatformError("instance.unsupported", `commands and files are not available for this instance: ${why}`);
}

function once(work: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) work();
    isDone = true;
  };
}
