import type { Readable, Writable } from "node:stream";
import { type CommandEnding, PlatformError, ReadLimitExceeded, readBoundedBytes } from "@aenv/contract";
import { IncomingBytes, OutgoingBytes } from "./bytes.ts";
import { type Fields, fieldsOf, numberIn } from "./json.ts";
import type { InitStream, Receiver } from "./stream.ts";

export interface TerminalSize {
  readonly rows: number;
  readonly cols: number;
}

export interface SpawnOptions {
  /** The program and its arguments. Without a slash, the program is looked up in the PATH of `env`. */
  readonly argv: readonly string[];
  /** All variables. The init adds PATH and HOME, and TERM for a terminal, if they are missing. */
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** `name`, `uid`, `name:group` or `uid:gid`; default: the user of the init. */
  readonly user?: string;
  /** Gives the process a terminal of this size; then all output is in `stdout`. */
  readonly pty?: TerminalSize;
  /** Without it, the input is at its end from the start. */
  readonly stdin?: boolean;
  /** The process's group gets SIGTERM after this time, and SIGKILL after the grace. */
  readonly deadlineMs?: number;
  readonly killGraceMs?: number;
  /** Output that is kept while no client is attached; beyond it the oldest is dropped. */
  readonly keepOutputBytes?: number;
  /** All output is appended to this file instead, also that of processes which outlive this one. */
  readonly outputPath?: string;
}

export interface ProcessOutput extends CommandEnding {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

/** A process inside of the sandbox. It goes on if the connection is lost; `attach` with `id` finds it again. */
export class RemoteProcess {
  readonly id: number;
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** How it ended. The end comes after the output: read the output, or destroy the two streams to drop it. */
  readonly exited: Promise<CommandEnding>;
  readonly #stream: InitStream;

  constructor(answer: unknown, stream: InitStream, outputs: ProcessOutputs) {
    const fields = fieldsOf(answer);
    this.#stream = stream;
    this.id = numberIn(fields, "process");
    this.pid = numberIn(fields, "pid");
    this.stdin = new OutgoingBytes(stream);
    this.stdout = outputs.stdout;
    this.stderr = outputs.stderr;
    this.exited = stream.summary.then((summary) => endingOf(fieldsOf(summary)));
    this.exited.catch(() => undefined);
  }

  /** Leaves the process alone: it goes on, its output is kept up to a limit, and `attach` finds it again. */
  detach(): void {
    this.#stream.reset(new Error("the client detached"));
  }

  /** Reads all output, and waits for the end. */
  async output(): Promise<ProcessOutput> {
    const [stdout, stderr, ending] = await Promise.all([readAll(this.stdout), readAll(this.stderr), this.exited]);
    return { ...ending, stdout, stderr };
  }
}

/** Divides the data of a process: the first byte of each frame says which output it belongs to. */
export class ProcessOutputs implements Receiver {
  readonly stdout: IncomingBytes;
  readonly stderr: IncomingBytes;

  constructor(stream: InitStream) {
    this.stdout = new IncomingBytes(stream, false);
    this.stderr = new IncomingBytes(stream, false);
  }

  receive(data: Buffer): void {
    const to = data[0] === 2 ? this.stderr : this.stdout;
    to.receive(data.subarray(1), data.length);
  }

  finish(): void {
    this.stdout.finish();
    this.stderr.finish();
  }

  fail(error: Error): void {
    this.stdout.fail(error);
    this.stderr.fail(error);
  }
}

export function spawnParameters(options: SpawnOptions): object {
  const { deadlineMs, killGraceMs, keepOutputBytes, outputPath, ...same } = options;
  return {
    ...same,
    deadline_ms: deadlineMs,
    kill_grace_ms: killGraceMs,
    keep_output_bytes: keepOutputBytes,
    output_path: outputPath,
  };
}

export function endingOf(fields: Fields): CommandEnding {
  return {
    exitCode: typeof fields.exit_code === "number" ? fields.exit_code : null,
    signal: typeof fields.signal === "string" ? fields.signal : null,
    timedOut: fields.timed_out === true,
    outOfMemory: fields.out_of_memory === true,
    interruption: typeof fields.interruption === "string" ? fields.interruption : null,
    durationMs: numberIn(fields, "duration_ms"),
    droppedBytes: numberIn(fields, "dropped_bytes"),
  };
}

async function readAll(from: Readable): Promise<Buffer> {
  try {
    return Buffer.from(await readBoundedBytes(from, { maxBytes: MAX_OUTPUT_BYTES }));
  } catch (error) {
    if (!(error instanceof ReadLimitExceeded)) throw error;
    throw new PlatformError("sandbox.answer_too_large", `the output of a command is not read: ${error.message}`, { cause: error });
  }
}

/** Commands whose output is read as a whole are those of the platform. */
const MAX_OUTPUT_BYTES = 64 * 1_024 ** 2;
