import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";

/** A process and its children, with their output. Leaving the scope ends all of them. */
export class Running implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #closed: Promise<unknown>;
  readonly #watchers = new Set<() => void>();
  #output = "";
  #code: number | null = null;
  #isOver = false;

  constructor(command: string, args: readonly string[], options: { readonly cwd: string; readonly env: NodeJS.ProcessEnv }) {
    // Its own process group: npx and shells do not pass on signals.
    this.#child = spawn(command, args, { ...options, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    this.#closed = once(this.#child, "close");
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.setEncoding("utf8").on("data", (text: string) => {
        this.#output += text;
        this.#wake();
      });
    }
    this.#child.on("close", (code) => {
      this.#code = code;
      this.#isOver = true;
      this.#wake();
    });
  }

  get output(): string {
    return this.#output;
  }

  /** Waits until the output contains the text. */
  async prints(text: string): Promise<void> {
    while (!this.#output.includes(text)) {
      if (this.#isOver) throw new Error(`it ended before it printed '${text}':\n${this.#output}`);
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  /** Waits for the end and returns the exit code. */
  async ended(): Promise<number | null> {
    await this.#closed;
    return this.#code;
  }

  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<number | null> {
    this.#signal(signal);
    return await this.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) await this.stop("SIGTERM");
  }

  #signal(signal: NodeJS.Signals): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, signal);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
    }
  }

  #wake(): void {
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }
}
