import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { isObject } from "@aenv/contract";
import type { Ran } from "./cli.ts";

export interface RunOptions {
  readonly cwd: string;
  readonly env?: NodeJS.ProcessEnv;
  /** The process leads its own group, and signals go to the whole group, as with Ctrl-C: npx would end alone and leave its child running. */
  readonly detached?: boolean;
}

/** The variables of a user's shell, without those that npm and this repository set for their scripts. */
export function plainEnv(): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (!/^(npm_|NODE_|VITEST|INIT_CWD|FORCE_COLOR|NO_COLOR)/i.test(name)) env[name] = value;
  }
  const path = (process.env.PATH ?? "")
    .split(delimiter)
    .filter((folder) => !folder.includes("node_modules") && !folder.includes("node-gyp-bin"));
  return { ...env, PATH: path.join(delimiter), NO_COLOR: "1" };
}

/**
 * The cache of Go for commands with a home of their own that build the init of sandboxes: compiling Go's own packages takes half a
 * minute for each architecture. It is found by its hash, so sharing it is safe.
 */
export const goCache = {
  GOCACHE: process.env.GOCACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "go-build"),
};

/** Runs a process to its end. */
export async function runProcess(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code: code ?? (signal === "SIGINT" ? 130 : 143), stdout, stderr };
}

/** Runs a process that must exit with 0. */
export async function mustRun(command: string, args: readonly string[], options: RunOptions): Promise<Ran> {
  const ran = await runProcess(command, args, options);
  if (ran.code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${ran.code}\n${ran.stdout}\n${ran.stderr}`);
  return ran;
}

export interface Event {
  readonly event: string;
  readonly [key: string]: unknown;
}

/** A process that prints one JSON event per line. Leaving the scope ends it. */
export class EventProcess implements AsyncDisposable {
  readonly child: ChildProcess;
  readonly #events: Event[] = [];
  readonly #waiting = new Set<() => void>();
  readonly #ended: Promise<unknown[]>;
  #stderr = "";
  #isOver = false;
  readonly #isGroup: boolean;

  constructor(command: string, args: readonly string[], options: RunOptions) {
    this.child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
    this.#isGroup = options.detached === true;
    this.#ended = once(this.child, "close");
    createInterface({ input: this.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      const value: unknown = line.startsWith("{") ? JSON.parse(line) : null;
      if (isObject(value)) this.#events.push(value as Event);
      this.#wake();
    });
    this.child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
    });
    this.child.on("close", () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** The next event of this name. Events before it are dropped. */
  async next(name: string): Promise<Event> {
    for (;;) {
      const at = this.#events.findIndex((event) => event.event === name);
      if (at >= 0) return this.#events.splice(0, at + 1).at(-1) as Event;
      if (this.#isOver) throw new Error(`the process ended before '${name}'; its stderr: ${this.#stderr}`);
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
    }
  }

  /** Sends a signal, and returns the exit code. */
  async stop(signal: NodeJS.Signals = "SIGINT"): Promise<number | null> {
    if (this.#isGroup && this.child.pid !== undefined) process.kill(-this.child.pid, signal);
    else this.child.kill(signal);
    const [code] = (await this.#ended) as [number | null];
    return code;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#isOver) await this.stop("SIGTERM");
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
    this.#waiting.clear();
  }
}
