import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { formatDuration, programPort } from "@aenv/contract";
import { PortReservations, type SandboxAddress, tellAddress, waitUntilReady } from "@aenv/sandbox";
import type { Project } from "../project/project.ts";
import { Failure } from "../terminal/failure.ts";

export interface CommandOptions {
  readonly project: Project;
  readonly loadTimeoutMs: number;
  /** A line of the program's output. */
  onLine(stream: "stdout" | "stderr", line: string): void;
  /** The program ended without being stopped. */
  onCrash(how: string): void;
}

const HOST = "127.0.0.1";
const KILL_AFTER_MS = 5_000;

/** A process that runs the command of config.json. */
export class CommandProcess {
  readonly target: { readonly host: string; readonly port: number };
  readonly #child: ChildProcess;
  readonly #ended: Promise<unknown>;
  #state: "starting" | "running" | "stopping" = "starting";

  private constructor({ project, onLine, onCrash }: CommandOptions, port: number) {
    const { root, config } = project;
    const { runtime = { command: [] }, deployConfig = {} } = config;
    this.target = { host: HOST, port };
    const given = { ...deployConfig.environmentVariables, ...deployConfig.environment_variables };
    const { command, variables } = tellAddress({ command: runtime.command, variables: given }, this.target);
    const [file = "", ...args] = command;
    const env = { ...process.env, envNAME: config.name, envversion: config.version, ...variables };
    // Its own process group, so that what a shell starts is ended with it.
    this.#child = spawn(file, args, { cwd: join(root, runtime.cwd ?? "."), env, stdio: ["ignore", "pipe", "pipe"], detached: true });
    this.#ended = new Promise((resolve) => this.#child.once("close", resolve).once("error", resolve));
    this.#child.once("close", (code, signal) => {
      if (this.#state === "running") onCrash(howOf(code, signal));
    });
    for (const stream of ["stdout", "stderr"] as const) {
      const input = this.#child[stream];
      if (input !== null) createInterface({ input }).on("line", (line) => onLine(stream, line));
    }
  }

  /** Starts the command and resolves when it answers. */
  static async start(options: CommandOptions, signal: AbortSignal): Promise<CommandProcess> {
    const { runtime } = options.project.config;
    if (runtime === undefined) throw new Failure("config.json names no runtime.command");
    const { port, isFlexible } = programPort(runtime);
    const started = new CommandProcess(options, await new PortReservations().reserve(port, isFlexible));
    try {
      await started.#untilReady(options, signal);
      started.#state = "running";
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#state = "stopping";
    this.#signal("SIGTERM");
    const killTimer = setTimeout(() => this.#signal("SIGKILL"), KILL_AFTER_MS);
    await this.#ended;
    clearTimeout(killTimer);
  }

  async #untilReady({ project, loadTimeoutMs }: CommandOptions, signal: AbortSignal): Promise<void> {
    const { command = [], healthPath = null } = project.config.runtime ?? {};
    const stop = new AbortController();
    const fail = (message: string, hint: string) => stop.abort(new Failure(message, { code: "environment.invalid", hint }));
    const place = "Look at its output above, and at runtime in config.json.";
    this.#child.once("error", (error: NodeJS.ErrnoException) =>
      fail(`cannot run '${command[0]}': ${error.code === "ENOENT" ? "no such program" : error.message}`, place),
    );
    this.#child.once("close", (code, by) =>
      fail(`the command '${command.join(" ")}' ended before it answered (${howOf(code, by)})`, place),
    );
    const { port } = this.target;
    const timer = setTimeout(() => {
      const what = `the command did not answer GET ${healthPath ?? "/health"} on ${HOST}:${port} within ${formatDuration(loadTimeoutMs)}`;
      fail(what, "It must listen on the port that {port} in runtime.command or the variable PORT names, and on the address in HOST.");
    }, loadTimeoutMs);
    const address: SandboxAddress = { kind: "tcp", ...this.target };
    const listening = { kind: "port", port, healthPath } as const;
    try {
      await waitUntilReady(() => address, listening, AbortSignal.any([signal, stop.signal]));
    } finally {
      clearTimeout(timer);
    }
  }

  #signal(name: NodeJS.Signals): void {
    const { pid, exitCode, signalCode } = this.#child;
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, name);
    } catch {
      // It has just ended.
    }
  }
}

function howOf(code: number | null, signal: NodeJS.Signals | null): string {
  return signal === null ? `exit code ${code}` : `signal ${signal}`;
}
