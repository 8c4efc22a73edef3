import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Files, type Tree, temporaryTree } from "@aenv/testing";
import picocolors from "picocolors";
import { runCli } from "../cli.ts";
import type { Output } from "../terminal.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const launcher = join(root, "packages/aenv/bin/aenv.js");

export interface CommandOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What is on its standard input, which then ends; `open` for an input that stays open. Nothing if absent. */
  readonly input?: string;
}

export interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command line in this process: quick, for what neither waits nor listens. */
export async function runHere(argv: readonly string[], { cwd = "/", env = {} }: CommandOptions = {}): Promise<Ended> {
  const [stdout, stderr] = [memoryOutput(), memoryOutput()];
  const surroundings = { HOME: "/nonexistent", ...env };
  const stopSignal = () => new AbortController().signal;
  const code = await runCli(argv, { stdout, stderr, cwd, env: surroundings, isInteractive: false, stopSignal });
  return { code, stdout: stdout.text(), stderr: stderr.text() };
}

/** Runs a command line to its end, in a process of its own, as a person without a terminal would see it. */
export async function run(argv: readonly string[], options: CommandOptions = {}): Promise<Ended> {
  await using running = new RunningCommand(argv, options);
  return await running.ended();
}

/** The same for what must succeed and answers with JSON. */
export async function runJson(argv: readonly string[], options: CommandOptions = {}): Promise<unknown> {
  const { code, stdout, stderr } = await run(argv, options);
  if (code !== 0) throw new Error(`aenv ${argv.join(" ")} ended with ${code}: ${stderr}`);
  return JSON.parse(stdout);
}

/** A command that goes on until it is stopped. Leaving the scope ends it. */
export class RunningCommand implements AsyncDisposable {
  readonly child: ChildProcess;
  stdout = "";
  stderr = "";
  readonly #closed: Promise<unknown[]>;
  readonly #watchers = new Set<() => void>();
  #isClosed = false;

  constructor(argv: readonly string[], { cwd = "/", env = {}, input = "" }: CommandOptions = {}) {
    const { PATH = "" } = process.env;
    this.child = spawn(process.execPath, [launcher, ...argv], { cwd, env: { PATH, HOME: "/nonexistent", NO_COLOR: "1", ...env } });
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

  /** Waits until it has printed such a thing on stdout, and answers the match. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.stdout);
      if (match !== null) return match;
      if (this.#isClosed) throw new Error(`it ended before it said ${pattern}:\n${this.stdout}\n${this.stderr}`);
      await new Promise<void>((resolve) => this.#watchers.add(resolve));
    }
  }

  async ended(): Promise<Ended> {
    const [code, signal] = (await this.#closed) as [number | null, NodeJS.Signals | null];
    return { code: code ?? (signal === "SIGINT" ? 130 : 143), stdout: this.stdout, stderr: this.stderr };
  }

  stop(signal: NodeJS.Signals = "SIGINT"): Promise<Ended> {
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

function memoryOutput(): Output & { text(): string } {
  let written = "";
  return {
    colors: picocolors.createColors(false),
    isTty: false,
    columns: 100,
    write: (text) => {
      written += text;
    },
    text: () => written,
  };
}

/** A folder in which `aenvironment` and `zod` can be imported, as after `npm install`. */
export function projectTree(files: Files = {}): Tree {
  const tree = temporaryTree(files);
  symlinkSync(join(root, "node_modules"), join(tree.path, "node_modules"));
  return tree;
}
