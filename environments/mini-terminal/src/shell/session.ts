import { statSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { Bash, type CommandEnd, within } from "./bash.ts";
import { OutputLimiter } from "./output.ts";
import { OutputPipe } from "./output-pipe.ts";
import { childrenOf, descendantsOf, endsAtInterrupt, listProcesses, type RunningProcess, sendSignal } from "./processes.ts";
import { Queue } from "./queue.ts";

export interface SessionOptions {
  readonly name: string;
  /** Where the first shell starts, and a later one if the folder of the shell before it is gone. */
  readonly workFolder: string;
  /** Folder of the files of the session itself. */
  readonly ownFolder: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly outputBytes: number;
}

export interface CommandOptions {
  readonly timeoutMs: number;
  /** Interrupts the command, or removes it from the queue. */
  readonly signal: AbortSignal;
}

export interface CommandResult {
  /** Standard output and standard error, in the order in which they were written. */
  readonly output: string;
  readonly cutBytes: number;
  readonly exitCode: number;
  readonly hasTimedOut: boolean;
  readonly durationMs: number;
  /** Set if the shell has ended and a new one was started. */
  readonly note: string | null;
}

/** How long a command may take to end after SIGINT, and the shell after its processes were killed. */
const GRACE_MS = 2_000;
const CHECK_MS = 100;
const KILLED = 137;

/** A bash session: what a command changes in the shell is there for the next one. */
export class Session {
  readonly #options: SessionOptions;
  readonly #pipe: OutputPipe;
  readonly #queue = new Queue();
  readonly #closing = new AbortController();
  /** What background processes print between two calls belongs to the next one. */
  #output: OutputLimiter;
  #bash: Bash;
  #folder: string;

  private constructor(options: SessionOptions, pipe: OutputPipe, bash: Bash) {
    this.#options = options;
    this.#pipe = pipe;
    this.#bash = bash;
    this.#folder = options.workFolder;
    this.#output = new OutputLimiter(options.outputBytes);
    pipe.consume((chunk) => this.#output.push(chunk));
  }

  static async open(options: SessionOptions): Promise<Session> {
    const pipe = await OutputPipe.open(options.ownFolder, `${options.name}.output`);
    try {
      return new Session(options, pipe, await startBash(options, pipe, options.workFolder));
    } catch (error) {
      await pipe.close();
      throw error;
    }
  }

  /** The process id of the shell, which is also that of its session. */
  get pid(): number {
    return this.#bash.pid;
  }

  /** The current folder of the shell, as of the last command. */
  get folder(): string {
    return this.#folder;
  }

  /** Runs a command after those before it. The time in the queue does not count. */
  run(command: string, { timeoutMs, signal }: CommandOptions): Promise<CommandResult> {
    const either = AbortSignal.any([signal, this.#closing.signal]);
    return this.#queue.add(() => this.#run(command, timeoutMs, either), either);
  }

  async #run(command: string, timeoutMs: number, signal: AbortSignal): Promise<CommandResult> {
    const noteBefore = this.#bash.hasExited ? await this.#restart("The shell has ended since the last command.") : null;
    const started = performance.now();
    const background = new Set(childrenOf(this.#bash.pid));
    const running = this.#bash.execute(command);
    const first = await untilEndOr(running, timeoutMs, signal);
    const end = first ?? (await this.#stop(running, background));
    this.#pipe.drain();
    const durationMs = Math.round(performance.now() - started);
    const { text, cutBytes } = this.#output.show();
    this.#output = new OutputLimiter(this.#options.outputBytes);
    const note = (await this.#goOnAfter(end, first === null)) ?? noteBefore;
    signal.throwIfAborted();
    return { output: text, cutBytes, exitCode: end.exitCode, hasTimedOut: first === null, durationMs, note };
  }

  /**
   * As Ctrl-C in a terminal: interrupts the processes of the command, and skips the rest of it. What does not end is killed, at last the
   * shell itself. Background processes of earlier commands go on.
   */
  async #stop(running: Promise<CommandEnd>, background: ReadonlySet<number>): Promise<CommandEnd> {
    this.#bash.abandon();
    for (const { pid, group } of this.#processesBut(background)) if (group === this.#bash.pid) sendSignal(pid, "SIGINT");
    for (let waited = 0; waited < GRACE_MS; waited += CHECK_MS) {
      const interrupted = await within(running, CHECK_MS);
      if (interrupted !== null) return interrupted;
      // A process that was started in the same moment did not get the signal.
      for (const { pid, group } of this.#processesBut(background))
        if (group === this.#bash.pid && endsAtInterrupt(pid)) sendSignal(pid, "SIGINT");
    }
    for (const { pid } of this.#processesBut(background)) sendSignal(pid, "SIGKILL");
    this.#bash.interrupt();
    const killed = await within(running, GRACE_MS);
    if (killed !== null) return killed;
    this.#folder = this.#bash.currentFolder() ?? this.#folder;
    for (const { pid } of this.#processesBut(background)) sendSignal(pid, "SIGKILL");
    this.#bash.kill();
    await running;
    return { kind: "exited", exitCode: KILLED };
  }

  /** The descendants of the shell, without those of the background processes. */
  #processesBut(background: ReadonlySet<number>): RunningProcess[] {
    const all = listProcesses();
    const children = all.filter(({ pid, parent }) => parent === this.#bash.pid && !background.has(pid));
    return children.flatMap((child) => [child, ...descendantsOf(child.pid, all)]);
  }

  async #goOnAfter(end: CommandEnd, isStopped: boolean): Promise<string | null> {
    if (end.kind === "exited") return this.#restart(isStopped ? "The shell did not react to an interrupt." : "The shell has ended.");
    this.#folder = end.cwd;
    return null;
  }

  /** Starts a new shell where the old one was, and returns what to tell the agent. */
  async #restart(why: string): Promise<string> {
    const { workFolder, ownFolder, name } = this.#options;
    const left = await readFile(lastFolderPath(ownFolder, name), "utf8").catch(() => "");
    this.#folder = [left.replace(/\n$/, ""), this.#folder, workFolder].find(isFolder) ?? "/";
    this.#closing.signal.throwIfAborted();
    const bash = await startBash(this.#options, this.#pipe, this.#folder);
    this.#bash = bash;
    // The session may have been closed meanwhile.
    if (this.#closing.signal.aborted) bash.kill();
    return `${why} A new one was started in the same folder; variables, functions and options of the old one are gone.`;
  }

  /** Ends the shell; processes that it has started are not ended here. */
  async close(): Promise<void> {
    this.#closing.abort(new Error("the session was closed"));
    this.#bash.kill();
    await this.#queue.done();
    await this.#pipe.close();
  }
}

async function startBash({ ownFolder, name, variables }: SessionOptions, pipe: OutputPipe, cwd: string): Promise<Bash> {
  await rm(lastFolderPath(ownFolder, name), { force: true });
  return Bash.start({ cwd, variables, outputPath: pipe.path, lastFolderPath: lastFolderPath(ownFolder, name) });
}

function lastFolderPath(ownFolder: string, name: string): string {
  return join(ownFolder, `${name}.folder`);
}

function isFolder(path: string): boolean {
  return path !== "" && statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** The end of a command; null if its time is over or the signal fires first. */
async function untilEndOr(running: Promise<CommandEnd>, timeoutMs: number, signal: AbortSignal): Promise<CommandEnd | null> {
  let onAbort: () => void = () => {};
  const aborted = new Promise<null>((resolve) => {
    onAbort = () => resolve(null);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  return await within(Promise.race([running, aborted]), timeoutMs).finally(() => signal.removeEventListener("abort", onAbort));
}
