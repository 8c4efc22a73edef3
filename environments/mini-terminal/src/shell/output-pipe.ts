import { execFile } from "node:child_process";
import { closeSync, constants, openSync, readSync } from "node:fs";
import { unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";

const CHUNK_BYTES = 64 * 1024;
/** At least as much as a pipe holds by default; a process may not enlarge it further. */
const MOST_IN_PIPE_BYTES = 1024 * 1024;

/**
 * The pipe to which the commands of a session write. It is a named pipe and not one of Node, which are sockets: a program may open
 * `/dev/stdout` only if it is a pipe. It outlives the shell, so background processes can go on writing when a new shell is started.
 */
export class OutputPipe {
  readonly path: string;
  readonly #fd: number;
  readonly #socket: Socket;
  #consumer: (chunk: Buffer) => void = () => {};

  private constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
    this.#socket = new Socket({ fd, readable: true, writable: false });
    this.#socket.on("data", (chunk: Buffer) => this.#consumer(chunk));
    this.#socket.on("error", () => {});
  }

  /** The pipe is created in this folder. */
  static async open(folder: string, name: string): Promise<OutputPipe> {
    const path = join(folder, name);
    try {
      await promisify(execFile)("mkfifo", ["-m", "600", path]);
    } catch (cause) {
      const why = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "it is not on the PATH" : String(cause);
      throw new Error(`mini-terminal cannot run 'mkfifo' of the coreutils: ${why}`, { cause });
    }
    // Open for writing too: the pipe then has no end while no command writes to it.
    const fd = openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
    try {
      return new OutputPipe(path, fd);
    } catch (error) {
      closeSync(fd);
      throw error;
    }
  }

  /** All further output goes to this function. */
  consume(consumer: (chunk: Buffer) => void): void {
    this.#consumer = consumer;
  }

  /** Consumes at once what was written before this call. */
  drain(): void {
    for (let taken = 0; taken < MOST_IN_PIPE_BYTES; ) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const length = readNow(this.#fd, chunk);
      if (length === 0) return;
      taken += length;
      this.#consumer(chunk.subarray(0, length));
    }
  }

  async close(): Promise<void> {
    this.#socket.destroy();
    await unlink(this.path).catch(() => {});
  }
}

/** The number of bytes read; 0 if there are none now. */
function readNow(fd: number, chunk: Buffer): number {
  try {
    return readSync(fd, chunk);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EAGAIN") return 0;
    throw error;
  }
}
