import { PlatformError } from "@aenv/contract";
import type { InitConnection, ListedProcess, RemoteProcess, TerminalSize } from "@aenv/sandbox";
import type { Caller } from "../access/access.ts";
import type { OpenSandbox } from "../sandboxes/init-connections.ts";
import { answered } from "../sandboxes/init-failure.ts";
import type { SandboxAccess } from "./sandbox-access.ts";

/** A command that a client wants to run. */
export interface CommandSpec {
  /** A text is run by `sh -c`; a list is a program and its arguments. */
  readonly command: string | readonly string[];
  readonly cwd?: string | undefined;
  /** In addition to the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly user?: string | undefined;
  readonly timeoutMs?: number | undefined;
  readonly pty?: TerminalSize | undefined;
  /** Whether the client sends input; else the input is empty. */
  readonly hasInput: boolean;
}

export interface CommandLimits {
  /** Commands of one instance at the same time, of all servers together. */
  readonly atOnce: number;
  /** The longest time of a command, and the default. */
  readonly timeoutMs: number;
}

/** A command in a sandbox, which this server follows. It goes on when the client or the server is gone. */
export interface FollowedCommand {
  readonly process: RemoteProcess;
  readonly init: InitConnection;
  /** Stops following: the command goes on, and its output is kept up to a limit. */
  detach(): void;
  /** Ends all processes of the command's group. */
  kill(): void;
}

/** Runs commands in the sandboxes of instances. */
export class Commands {
  readonly #access: SandboxAccess;
  readonly #limits: CommandLimits;

  constructor(access: SandboxAccess, limits: CommandLimits) {
    this.#access = access;
    this.#limits = limits;
  }

  async start(id: string, spec: CommandSpec, caller: Caller, signal: AbortSignal): Promise<FollowedCommand> {
    const sandbox = await this.#access.open(id, caller, signal);
    try {
      await this.#makeRoom(id, sandbox.init);
      const { cwd, env } = sandbox.defaults;
      const process = await answered(
        sandbox.init.spawn({
          argv: typeof spec.command === "string" ? ["sh", "-c", spec.command] : spec.command,
          cwd: spec.cwd === undefined ? cwd : sandbox.path(spec.cwd),
          env: { ...env, ...spec.env },
          stdin: spec.hasInput,
          deadlineMs: Math.min(spec.timeoutMs ?? this.#limits.timeoutMs, this.#limits.timeoutMs),
          ...(spec.user !== undefined && { user: spec.user }),
          ...(spec.pty !== undefined && { pty: spec.pty }),
        }),
      );
      return follow(sandbox, process);
    } catch (error) {
      sandbox.release();
      throw error;
    }
  }

  /** Follows a command that was started before, from the output that no client has taken. */
  async attach(id: string, process: number, caller: Caller, signal: AbortSignal): Promise<FollowedCommand> {
    const sandbox = await this.#access.open(id, caller, signal);
    try {
      return follow(sandbox, await answered(sandbox.init.attach(process)));
    } catch (error) {
      sandbox.release();
      throw error;
    }
  }

  /** The commands that run, and those whose end no client has read. */
  list(id: string, caller: Caller, signal: AbortSignal): Promise<readonly ListedProcess[]> {
    return this.#with(id, caller, signal, ({ init }) => init.listProcesses());
  }

  signal(id: string, process: number, name: NodeJS.Signals, caller: Caller, signal: AbortSignal): Promise<void> {
    return this.#with(id, caller, signal, ({ init }) => init.signal(process, name, { group: true }));
  }

  async #with<T>(id: string, caller: Caller, signal: AbortSignal, work: (sandbox: OpenSandbox) => Promise<T>): Promise<T> {
    const sandbox = await this.#access.open(id, caller, signal);
    try {
      return await answered(work(sandbox));
    } finally {
      sandbox.release();
    }
  }

  /** The init knows the commands of all servers. Ended ones that no client has read are dropped first. */
  async #makeRoom(id: string, init: InitConnection): Promise<void> {
    const { atOnce } = this.#limits;
    const listed = await answered(init.listProcesses());
    if (listed.length < atOnce) return;
    const running = listed.filter(({ ending }) => ending === null).length;
    if (running >= atOnce) {
      const message = `instance '${id}' runs ${running} commands already, the server's limit (commandsPerInstance); wait until one has ended, or end one`;
      throw new PlatformError("quota.exceeded", message, { details: { limit: atOnce, retryAfterSeconds: 1 } });
    }
    for (const { id: process, ending } of listed) {
      if (ending === null) continue;
      const ended = await init.attach(process).catch(() => null);
      for (const output of [ended?.stdout, ended?.stderr]) output?.destroy();
    }
  }
}

function follow(sandbox: OpenSandbox, process: RemoteProcess): FollowedCommand {
  process.exited.then(sandbox.release, sandbox.release);
  return {
    process,
    init: sandbox.init,
    detach: () => process.detach(),
    kill: () => void sandbox.init.signal(process.id, "SIGKILL", { group: true }).catch(() => {}),
  };
}
