import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { readlinkSync } from "node:fs";
import { constants } from "node:os";
import type { Duplex } from "node:stream";
import { sendSignal } from "./processes.ts";
import { ABANDON_SIGNAL, CONTROL_AT_START, commandText, type EndMessage, EndReader, startText } from "./protocol.ts";

/** How a command ended: bash reports it and goes on, or bash itself has ended. */
export type CommandEnd = ({ readonly kind: "done" } & EndMessage) | { readonly kind: "exited"; readonly exitCode: number };

export interface BashOptions {
  readonly cwd: string;
  readonly variables: Readonly<Record<string, string>>;
  readonly outputPath: string;
  readonly lastFolderPath: string;
}

const START_TIMEOUT_MS = 30_000;

/** A bash process that runs one command after the other. It leads its own session, and a process group with its commands. */
export class Bash {
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #exited: Promise<CommandEnd>;

  private constructor(child: ChildProcess, exited: Promise<CommandEnd>) {
    this.#child = child;
    this.pid = child.pid as number;
    this.#exited = exited;
  }

  /** Resolves when it can run commands. */
  static async start({ cwd, variables, outputPath, lastFolderPath }: BashOptions): Promise<Bash> {
    const child = spawn("bash", ["--norc", "--noprofile", "--noediting", "-i"], {
      cwd,
      env: { ...variables },
      detached: true,
      stdio: ["pipe", "ignore", "ignore", "pipe"],
    });
    const exited = new Promise<CommandEnd>((resolve, reject) => {
      child.once("exit", (code, signal) =>
        resolve({ kind: "exited", exitCode: code ?? 128 + (constants.signals[signal ?? "SIGKILL"] ?? 0) }),
      );
      child.once("error", (cause) => reject(startError(cause)));
    });
    exited.catch(() => {});
    // Writing to a shell that has just ended fails; its exit is reported anyway.
    for (const stream of [child.stdin, child.stdio[CONTROL_AT_START]]) stream?.on("error", () => {});
    const bash = new Bash(child, exited);
    const nonce = newNonce();
    const started = await within(bash.#send(startText({ output: outputPath, lastFolder: lastFolderPath }, nonce), nonce), START_TIMEOUT_MS);
    if (started?.kind === "done") return bash;
    bash.kill();
    const why = started === null ? `it did not answer within ${START_TIMEOUT_MS} ms` : `it ended with the exit code ${started.exitCode}`;
    throw new Error(`mini-terminal cannot start bash: ${why}`);
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Runs a command. The one before it must have ended. */
  execute(command: string): Promise<CommandEnd> {
    const nonce = newNonce();
    return this.#send(commandText(command, nonce), nonce);
  }

  async #send(text: string, nonce: string): Promise<CommandEnd> {
    const reader = new EndReader(nonce);
    const control = this.#child.stdio[CONTROL_AT_START] as Duplex;
    let onData: (chunk: Buffer) => void = () => {};
    const reported = new Promise<CommandEnd>((resolve) => {
      onData = (chunk) => {
        const end = reader.push(chunk);
        if (end !== null) resolve({ kind: "done", ...end });
      };
      control.on("data", onData);
    });
    this.#child.stdin?.write(text);
    try {
      return await Promise.race([reported, this.#exited]);
    } finally {
      control.off("data", onData);
    }
  }

  /** Skips the rest of the running command, as soon as the process that bash waits for has ended. */
  abandon(): void {
    if (!this.hasExited) sendSignal(this.pid, ABANDON_SIGNAL);
  }

  interrupt(): void {
    if (!this.hasExited) sendSignal(this.pid, "SIGINT");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** The current folder while bash runs; null if the system does not tell. */
  currentFolder(): string | null {
    try {
      return readlinkSync(`/proc/${this.pid}/cwd`);
    } catch {
      return null;
    }
  }
}

/** The value, or null if the time is over first. */
export async function within<T>(promise: Promise<T>, ms: number): Promise<T | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(resolve, ms, null);
  });
  return await Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

function newNonce(): string {
  return `end-${randomBytes(16).toString("hex")}`;
}

function startError(cause: Error): Error {
  const why =
    (cause as NodeJS.ErrnoException).code === "ENOENT"
      ? "there is no bash on the PATH of the sandbox; run it where bash and the coreutils are, such as in an image of a Linux distribution"
      : cause.message;
  return new Error(`mini-terminal cannot start bash: ${why}`, { cause });
}
