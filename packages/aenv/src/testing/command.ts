import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { launcher, type Ran } from "./cli.ts";
import { goCache } from "./process.ts";

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The content of stdin; `open` keeps stdin open. Empty by default. */
  readonly input?: string;
}

/** Runs a command line to its end in a separate process, without a terminal. */
export async function run(argv: readonly string[], options: CommandOptions = {}): Promise<Ran> {
  await using running = new RunningCommand(argv, options);
  return await running.ended();
}

/** Runs a command that must succeed, and parses its JSON. */
export async function runJson(argv: readonly string[], options: CommandOptions = {}): Promise<unknown> {
  const { code, stdout, stderr } = await run(argv, options);
  if (code !== 0) throw new Error(`aenv ${argv.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A command that runs until it is stopped. Leaving the scope ends it. */
export class RunningCommand implements AsyncDisposable {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<unknown[]>;
  readonly #watchers = new Set<() => void>();
  #isClosed = false;

  constructor(argv: readonly string[], { cwd = "/", env = {}, input = "" }: CommandOptions = {}) {
    // With the tests' folder for compiled code: a home of its own has none yet.
    const { PATH = "", NODE_COMPILE_CACHE } = process.env;
    this.child = spawn(process.execPath, [launcher, ...argv], {
      cwd,
      env: { PATH, NODE_COMPILE_CACHE, HOME: "/nonexistent", NO_COLOR: "1", ...goCache, ...env },
    });
    this.#closed = once(this.child, "close");
    for (const name of ["stdout", "stderr"] as const) {
      this.child[name]?.setEncoding("utf8").on("data", (text: string) => {
        this[name] += text;
        this.#wake();
      });
    }
    this.child.on("close", () => {
      this.#isClosed = true;
      this.#wake();
    });
    if (input !== "open") this.child.stdin?.end(input);
  }

  /** Waits until stdout matches the pattern, and returns the match. */
  async prints(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout);
      if (match !== null) return match;
      if (this.#isClosed) throw new Error(`it ended before it printed ${pattern}:\n${this.stdout}\n${this.stderr}`);
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  async ended(): Promise<Ran> {
    const [code, signal] = (await this.#closed) as [number | null, NodeJS.Signals | null];
    return { code: code ?? (signal === "SIGINT" ? 130 : 143), stdout: this.stdout, stderr: this.stderr };
  }

  stop(signal: NodeJS.Signals = "SIGINT"): Promise<Ran> {
    this.child.kill(signal);
    return this.ended();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isClosed) await this.stop("SIGKILL");
  }

  #wake(): void {
    for (const wake of this.#watchers) wake();
    this.#watchers.clear();
  }
}
