import { connect, type Socket } from "node:net";
import type { BoxAddress } from "@aenv/sandbox";

/** A connection to a box; it serves one call at a time. */
export interface BoxLine {
  readonly socket: Socket;
  /** Who listens to the box just now. */
  onData: (bytes: Buffer) => void;
  onClose: (error: Error) => void;
}

interface IdleLine {
  readonly line: BoxLine;
  readonly usableUntil: number;
}

const MAX_IDLE_MS = 30_000;
const nobody = () => {};

/** Plain connections to one box, kept for the next call. */
export class BoxLines {
  readonly #address: BoxAddress;
  readonly #all = new Set<BoxLine>();
  readonly #idle: IdleLine[] = [];
  #isClosed = false;

  constructor(address: BoxAddress) {
    this.#address = address;
  }

  /** The line that was used last, or a new one. */
  take(): BoxLine {
    for (let kept = this.#idle.pop(); kept !== undefined; kept = this.#idle.pop()) {
      if (performance.now() < kept.usableUntil) return kept.line;
      kept.line.socket.destroy();
    }
    return this.#open();
  }

  /** Gives a line back that the box keeps for so long. */
  give(line: BoxLine, keepMs: number): void {
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

  #open(): BoxLine {
    const address = this.#address;
    const socket = connect(address.kind === "unix" ? { path: address.path } : { host: address.host, port: address.port, noDelay: true });
    const line: BoxLine = { socket, onData: nobody, onClose: nobody };
    let failure = new Error("the box hung up");
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
