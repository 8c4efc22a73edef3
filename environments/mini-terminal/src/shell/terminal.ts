import { randomBytes } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { descendantsOf, hasVariable, listProcesses, sendSignal } from "./processes.ts";
import { type CommandOptions, type CommandResult, Session } from "./session.ts";

export interface TerminalOptions {
  /** Variables of the shells, besides those that every shell has. */
  readonly variables: Readonly<Record<string, string>>;
  /** The longest output of a command that is returned whole. */
  readonly outputBytes: number;
}

export const MAIN_SESSION = "main";
const MAX_SESSIONS = 16;

/** Variables of this process that shells get too. Others, such as keys of the person who runs it, are not for an agent. */
const INHERITED = /^(PATH|LANG|LANGUAGE|LC_.+|TZ|TMPDIR|USER|LOGNAME|AENV_SANDBOX)$/;
/** Variable by which the processes of a terminal are found, also those that have left their session. */
const MARKER = "AENV_TERMINAL";
const KILL_ROUNDS = 50;
const KILL_PAUSE_MS = 20;

/** A working folder, and the bash sessions that were opened in it. */
export class Terminal {
  readonly workFolder: string;
  readonly #folder: string;
  readonly #options: TerminalOptions;
  readonly #marker = randomBytes(12).toString("hex");
  readonly #sessions = new Map<string, Promise<Session>>();
  #isClosed = false;

  private constructor(folder: string, options: TerminalOptions) {
    this.#folder = folder;
    this.#options = options;
    this.workFolder = join(folder, "work");
  }

  /** Creates the folder and starts the first session. */
  static async open(options: TerminalOptions): Promise<Terminal> {
    const terminal = new Terminal(await mkdtemp(join(tmpdir(), "mini-terminal-")), options);
    try {
      await mkdir(terminal.workFolder);
      await mkdir(terminal.#ownFolder, { mode: 0o700 });
      await terminal.#session(MAIN_SESSION);
      return terminal;
    } catch (error) {
      await terminal.close();
      throw error;
    }
  }

  get #ownFolder(): string {
    return join(this.#folder, "own");
  }

  get sessions(): string[] {
    return [...this.#sessions.keys()];
  }

  /** Runs a command in the session of this name, which is opened if there is none. */
  async run(command: string, { session: name, ...options }: CommandOptions & { readonly session: string }): Promise<CommandResult> {
    return (await this.#session(name)).run(command, options);
  }

  /** Runs a command in a session of its own, which no other command has changed. */
  async runAside(command: string, options: CommandOptions): Promise<CommandResult> {
    const session = await this.#open(`.${randomBytes(6).toString("hex")}`);
    try {
      return await session.run(command, options);
    } finally {
      await session.close();
    }
  }

  #session(name: string): Promise<Session> {
    const known = this.#sessions.get(name);
    if (known !== undefined) return known;
    if (this.#isClosed) throw new Error("the terminal is closed");
    if (this.#sessions.size >= MAX_SESSIONS)
      throw new Error(`there are ${MAX_SESSIONS} sessions already: ${this.sessions.join(", ")}; use one of them`);
    const opening = this.#open(name);
    this.#sessions.set(name, opening);
    // The next call tries again.
    opening.catch(() => this.#sessions.delete(name));
    return opening;
  }

  #open(name: string): Promise<Session> {
    const { variables, outputBytes } = this.#options;
    return Session.open({
      name,
      workFolder: this.workFolder,
      ownFolder: this.#ownFolder,
      outputBytes,
      variables: { ...inherited(), TERM: "dumb", ...variables, HOME: this.workFolder, [MARKER]: this.#marker },
    });
  }

  /** The current folder of each session. */
  async folders(): Promise<Record<string, string>> {
    const opened = await Promise.all([...this.#sessions].map(async ([name, opening]) => [name, (await opening).folder] as const));
    return Object.fromEntries(opened);
  }

  /** Ends all sessions and all processes that they have started, and deletes the folder. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const settled = await Promise.allSettled(this.#sessions.values());
    const sessions = settled.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
    const shells = new Set(sessions.map(({ pid }) => pid));
    const closing = sessions.map((session) => session.close());
    await this.#killAll(shells);
    await Promise.all(closing);
    // A shell that was being started again is found by its marker.
    await this.#killAll(new Set());
    await rm(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** In rounds, because a process may start another one while it is killed. */
  async #killAll(shells: ReadonlySet<number>): Promise<void> {
    for (let round = 0; round < KILL_ROUNDS; round++) {
      const left = this.#processes(shells);
      if (left.length === 0) return;
      for (const pid of left) sendSignal(pid, "SIGKILL");
      await setTimeout(KILL_PAUSE_MS);
    }
  }

  /** Processes in the sessions of these shells, those with the marker, and their descendants. */
  #processes(shells: ReadonlySet<number>): number[] {
    const all = listProcesses();
    const found = new Set<number>();
    for (const { pid, session } of all) if (shells.has(session) || hasVariable(pid, `${MARKER}=${this.#marker}`)) found.add(pid);
    for (const pid of [...found]) for (const each of descendantsOf(pid, all)) found.add(each.pid);
    return [...found];
  }
}

function inherited(): Record<string, string> {
  const entries = Object.entries(process.env).filter(
    (entry): entry is [string, string] => INHERITED.test(entry[0]) && entry[1] !== undefined,
  );
  return Object.fromEntries(entries);
}
