import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ProcessEnd } from "../host/exit-reason.ts";

export interface LaunchRequest {
  readonly file: string;
  readonly args: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly cwd: string;
  /** Output is appended to this file. */
  readonly log: string;
  /** The folder of the control group into which the process is moved, as soon as it exists. */
  readonly group?: string | undefined;
}

export interface Launched {
  readonly pid: number;
  /** The error code if the process could not be moved into its group. */
  readonly groupError: string | null;
  /** Null if the launcher has ended before the process: then the process goes on, and nobody gets its exit code. */
  readonly ended: Promise<ProcessEnd["exit"]>;
}

export type LaunchOrder = LaunchRequest & { readonly id: number };

export type LaunchReport =
  | { readonly kind: "started"; readonly id: number; readonly pid: number; readonly groupError: string | null }
  | { readonly kind: "failed"; readonly id: number; readonly code: string; readonly message: string }
  | { readonly kind: "ended"; readonly id: number; readonly exit: NonNullable<ProcessEnd["exit"]> };

interface Waiting {
  readonly resolve: (launched: Launched) => void;
  readonly reject: (error: Error) => void;
}

/** In the published package, this file is part of a chunk, in the folder of the program. */
const PROGRAM = fileURLToPath(new URL(import.meta.url.endsWith(".ts") ? "./launcher-program.ts" : "./launcher.js", import.meta.url));

/** The code of the error if the launcher ends before it answers. The program may run. */
export const LAUNCHER_LOST = "LAUNCHER_LOST";

let current: Launcher | undefined;

/**
 * Starts a process that outlives this one: it leads its own session. A small process starts it for us, because Node copies its memory for a new
 * process and waits until that runs its program, which takes tens of milliseconds if there is much memory and the machine is busy.
 */
export function launch(request: LaunchRequest): Promise<Launched> {
  if (current === undefined || !current.isOpen) current = new Launcher();
  return current.launch(request);
}

/** The process that starts others. It starts with the first of them, and ends with this process. */
class Launcher {
  readonly #child: ChildProcess;
  readonly #starting = new Map<number, Waiting>();
  readonly #running = new Map<number, (exit: ProcessEnd["exit"]) => void>();
  #lastId = 0;
  isOpen = true;

  constructor() {
    // A session of its own: the end of a terminal is for this process.
    const options: ForkOptions = { env: {}, execArgv: [], detached: true, stdio: ["ignore", "ignore", "ignore", "ipc"] };
    this.#child = fork(PROGRAM, [String(process.pid)], options);
    this.#child.on("message", (report) => this.#onReport(report as LaunchReport));
    this.#child.once("error", (error) => this.#close(error));
    this.#child.once("disconnect", () => this.#close(new Error("the process that starts programs has ended")));
    this.#child.unref();
    this.#child.channel?.unref();
  }

  launch(request: LaunchRequest): Promise<Launched> {
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#starting.set(id, { resolve, reject });
      // This process does not end before the answer.
      this.#child.channel?.ref();
      this.#child.send({ ...request, id } satisfies LaunchOrder, (error) => error !== null && this.#close(error));
    });
  }

  #onReport(report: LaunchReport): void {
    const { id } = report;
    if (report.kind === "ended") {
      this.#running.get(id)?.(report.exit);
      this.#running.delete(id);
      return;
    }
    const waiting = this.#starting.get(id);
    this.#starting.delete(id);
    if (this.#starting.size === 0) this.#child.channel?.unref();
    if (report.kind === "failed") {
      waiting?.reject(Object.assign(new Error(report.message), { code: report.code }));
      return;
    }
    const { pid, groupError } = report;
    const ended = new Promise<ProcessEnd["exit"]>((resolve) => this.#running.set(id, resolve));
    waiting?.resolve({ pid, groupError, ended });
  }

  #close(cause: Error): void {
    this.isOpen = false;
    for (const { reject } of this.#starting.values()) reject(Object.assign(cause, { code: LAUNCHER_LOST }));
    for (const end of this.#running.values()) end(null);
    this.#starting.clear();
    this.#running.clear();
  }
}
