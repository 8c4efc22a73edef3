import { posix } from "node:path";
import { PlatformError } from "@aenv/contract";
import { type CommandDefaults, connectInit, type InitConnection, type Sandbox, type SandboxEngine } from "@aenv/sandbox";

/** The commands and files of a sandbox, in use until `release`. */
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
export class InitConnections {
  readonly #engine: Pick<SandboxEngine, "commands">;
  readonly #held = new Map<string, Held>();

  constructor(engine: Pick<SandboxEngine, "commands">) {
    this.#engine = engine;
  }

  async open(sandbox: Sandbox, signal: AbortSignal): Promise<OpenSandbox> {
    const held = this.#hold(sandbox);
    const { defaults = ROOT } = sandbox.commands ?? {};
    let isReleased = false;
    const release = () => {
      if (isReleased) return;
      isReleased = true;
      this.#letGo(sandbox.id, held);
    };
    try {
      const init = await held.connection;
      signal.throwIfAborted();
      return { init, defaults, path: (text) => posix.resolve(defaults.cwd, text), release };
    } catch (error) {
      release();
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

  async #connect({ id, commands }: Sandbox): Promise<InitConnection> {
    const { key } = this.#engine.commands ?? {};
    if (commands === undefined || key === undefined)
      throw new PlatformError("sandbox.unsupported", `sandbox '${id}' was started without an init, so it has no commands and files`);
    return connectInit(commands.address, key, AbortSignal.timeout(CONNECT_MS));
  }
}
