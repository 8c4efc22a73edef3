import { connect, type Socket } from "node:net";
import type { SandboxAddress } from "@aenv/sandbox";

/** A connection to a sandbox; it serves one call at a time. */
export interface SandboxLine {
  readonly socket: Socket;
  /** Who listens to the sandbox just now. */
  onData: (bytes: Buffer) => void;
  onClose: (error: Error) => void;
}

interface IdleLine {
  readonly line: SandboxLine;
  readonly usableUntil: number;
}

const MAX_IDLE_MS = 30_000;
const nobody = () => {};

/** Plain connections to one sandbox, kept for the next call. */
export class SandboxLines {
  readonly #address: SandboxAddress;
  readonly #all = new Set<SandboxLine>();
  readonly #idle: IdleLine[] = [];
  #isClosed = false;

  constructor(address: SandboxAddress) {
    this.#address = address;
  }

  /** The line that was used last, or a new one. */
  take(): SandboxLine {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (performance.now() < kept.usableUntil) return kept.line;
      kept.line.socket.destroy();
    }
    return this.#open();
  }

  /** Gives a line back that the sandbox keeps for so long. */
  give(line: SandboxLine, keepMs: number): void {
    line.onClose = nobody;
    // Nothing was asked: whatever it says could be taken for the next call's answer.
    line.onData = () => line.socket.destroy();
    if (keepMs <= 0 || line.socket.destroyed || this.#isClosed) return void line.socket.destroy();
    this.#idle.push({ line, usableUntil: performance.now() + Math.min(keepMs, MAX_IDLE_MS) });
  }

  /** Breaks what is in flight, too. */
  destroy(): void {
    this.#isClosed = true;
    for (const { socket } of this.#all) socket.destroy();
  }

  /** What is in flight finishes. */
  close(): void {
    this.#isClosed = true;
    for (const { line } of this.#idle.splice(0)) line.socket.destroy();
  }

  #open(): SandboxLine {
    const address = this.#address;
    const socket = connect(address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port, noDelay: true });
    const line: SandboxLine = { socket, onData: nobody, onClose: nobody };
    let failure = new Error("the sandbox hung up");
    this.#all.add(line);
    socket.on("data", (bytes) => line.onData(bytes));
    socket.on("error", (error) => {
      failure = error;
    });
    socket.on("close", () => {
      this.#all.delete(line);
      const at = this.#idle.findIndex((kept) => kept.line === line);
      if (at >= 0) this.#idle.splice(at, 1);
      line.onClose(failure);
    });
    return line;
  }
}
