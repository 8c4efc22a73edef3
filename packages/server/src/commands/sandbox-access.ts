import { posix } from "node:path";
import { PlatformError } from "@aenv/contract";
import { type CommandDefaults, connectInit, type InitConnection, type Sandbox, type SandboxEngine } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { Instances } from "../instances/instances.ts";
import { type InstanceRow, slotOf } from "../instances/row.ts";
import type { Slots } from "../slots/slots.ts";

export interface SandboxAccessOptions {
  readonly instances: Instances;
  readonly slots: Slots;
  readonly engine: SandboxEngine;
}

/** The sandbox of one instance, in use until `release`. */
export interface OpenSandbox {
  readonly init: InitConnection;
  readonly defaults: CommandDefaults;
  /** A path of the sandbox: a relative one begins at the working directory. */
  path(text: string): string;
  /** Idempotent. */
  release(): void;
}

interface Held {
  readonly connection: Promise<InitConnection>;
  uses: number;
  closing?: NodeJS.Timeout;
}

const CONNECT_MS = 10_000;
/** A connection that is not used is closed after this time. */
const IDLE_MS = 30_000;
const ROOT: CommandDefaults = { cwd: "/", env: {} };

/** Connections to the inits of sandboxes: one for each sandbox, shared by all requests of this server. */
export class SandboxAccess {
  readonly #options: SandboxAccessOptions;
  readonly #held = new Map<string, Held>();

  constructor(options: SandboxAccessOptions) {
    this.#options = options;
  }

  /** The instance counts as used until the release. */
  async open(id: string, caller: Caller, signal: AbortSignal): Promise<OpenSandbox> {
    const { instances, slots, engine } = this.#options;
    const row = await instances.get(id, caller);
    const slot = slotOf(row);
    if (!engine.can.commands) throw unsupported(engine.name === "process" ? PROCESS_HINT : `the engine '${engine.name}' runs no commands`);
    if (!slot.isOwnSandbox) throw unsupported(SHARED);
    instances.use(row);
    try {
      const sandbox = await slots.find(slot.sandboxId);
      if (sandbox === null) throw new PlatformError("sandbox.lost", `instance '${id}' has no sandbox on this server's machine any more`);
      const held = this.#hold(sandbox);
      try {
        const init = await held.connection;
        signal.throwIfAborted();
        return this.#opened(sandbox, row, held, init);
      } catch (error) {
        this.#letGo(sandbox.id, held);
        throw error;
      }
    } catch (error) {
      instances.release(row);
      throw error;
    }
  }

  async close(): Promise<void> {
    const all = [...this.#held.values()];
    this.#held.clear();
    await Promise.all(
      all.map(async ({ connection, closing }) => {
        clearTimeout(closing);
        await connection.then((init) => init.close()).catch(() => {});
      }),
    );
  }

  #opened(sandbox: Sandbox, row: InstanceRow, held: Held, init: InitConnection): OpenSandbox {
    const { commandDefaults: defaults = ROOT } = sandbox;
    let isReleased = false;
    return {
      init,
      defaults,
      path: (text) => posix.resolve(defaults.cwd, text),
      release: () => {
        if (isReleased) return;
        isReleased = true;
        this.#letGo(sandbox.id, held);
        this.#options.instances.release(row);
      },
    };
  }

  #hold(sandbox: Sandbox): Held {
    let held = this.#held.get(sandbox.id);
    if (held === undefined) {
      held = { connection: this.#connect(sandbox), uses: 0 };
      this.#held.set(sandbox.id, held);
      const forget = () => this.#held.get(sandbox.id) === held && this.#held.delete(sandbox.id);
      held.connection.then((init) => init.closed.then(forget), forget);
    }
    held.uses++;
    clearTimeout(held.closing);
    return held;
  }

  #letGo(sandboxId: string, held: Held): void {
    if (--held.uses > 0) return;
    held.closing = setTimeout(() => {
      if (this.#held.get(sandboxId) === held) this.#held.delete(sandboxId);
      void held.connection.then((init) => init.close()).catch(() => {});
    }, IDLE_MS).unref();
  }

  async #connect({ initAddress }: Sandbox): Promise<InitConnection> {
    const { initKey } = this.#options.engine;
    if (initAddress === undefined || initKey === undefined)
      throw unsupported("this sandbox was started without an init; create a new instance");
    return connectInit(initAddress, initKey, AbortSignal.timeout(CONNECT_MS));
  }
}

const PROCESS_HINT =
  "plain processes have no commands and files unless the server runs with --process-commands; the engines oci and docker always have them";
const SHARED =
  'instances of this environment share a process, so none has a sandbox of its own; set deployConfig.isolation to "instance" and publish a new version';

function unsupported(why: string): PlatformError {
  return new PlatformError("instance.unsupported", `commands and files are not available for this instance: ${why}`);
}
