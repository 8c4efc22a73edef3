import { type ChildProcess, spawn } from "node:child_process";
import type { FromWorker, ToWorker } from "./messages.ts";

export interface WorkerProcessOptions {
  /** The command line of a worker. */
  readonly command: readonly string[];
  readonly onMessage: (message: FromWorker) => void;
}

/** A worker's process, and the channel to it. It ends itself when the channel is closed, so also when this process dies. */
export class WorkerProcess {
  readonly exited: Promise<string>;
  readonly #child: ChildProcess;

  constructor({ command: [program = "", ...args], onMessage }: WorkerProcessOptions) {
    // Its log goes to the same place as the server's.
    this.#child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit", "ipc"], serialization: "advanced" });
    this.#child.on("message", (message) => onMessage(message as FromWorker));
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => resolve(signal === null ? `it exited with code ${code}` : `it was ended by ${signal}`));
      this.#child.once("error", (error) => resolve(`it could not be started: ${error.message}`));
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Messages to a worker that has ended are dropped: its exit is handled separately. */
  send(message: ToWorker): void {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  /** Ends it, now that it has nothing left to do. */
  release(): void {
    if (this.#child.connected) this.#child.disconnect();
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }
}
