import { PlatformError } from "@aenv/contract";
import type { SandboxEngine } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { Instances } from "../instances/instances.ts";
import { slotOf } from "../instances/row.ts";
import type { InitConnections, OpenSandbox } from "../sandboxes/init-connections.ts";
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

  /** The instance counts as used until the release. */
  async open(id: string, caller: Caller, signal: AbortSignal): Promise<OpenSandbox> {
    const { instances, slots, engine, connections } = this.#options;
    const row = await instances.get(id, caller);
    const slot = slotOf(row);
    if (!engine.can.commands) throw unsupported(engine.name === "process" ? PROCESS_HINT : `the engine '${engine.name}' runs no commands`);
    if (!slot.isOwnSandbox) throw unsupported(SHARED);
    instances.use(row);
    try {
      const sandbox = await slots.find(slot.sandboxId);
      if (sandbox === null) throw new PlatformError("sandbox.lost", `instance '${id}' has no sandbox on this server's machine any more`);
      if (sandbox.initAddress === undefined) throw unsupported("this sandbox was started without an init; create a new instance");
      const opened = await connections.open(sandbox, signal);
      return {
        ...opened,
        release: once(() => {
          opened.release();
          instances.release(row);
        }),
      };
    } catch (error) {
      instances.release(row);
      throw error;
    }
  }
}

const PROCESS_HINT =
  "plain processes have no commands and files unless the server runs with --process-commands; the engines oci and docker always have them";
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
