import { closeSync, type FSWatcher, fstatSync, openSync, readSync, statSync, truncateSync, watch, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { WakeSignal } from "./wake-signal.ts";

const CHUNK = 64 * 1024;
const MAX_LINE = 64 * 1024;
const MAX_TAIL_BYTES = 1024 * 1024;

/**
 * The output of a sandbox. The program itself writes the file, so that logging goes on without this process, which only limits its size.
 */
export class SandboxLog {
  readonly #path: string;
  readonly #maxBytes: number;
  #trims = 0;

  constructor(path: string, maxBytes: number) {
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  /**
   * If the file is too large, copies its newer half to the older file and truncates it. The program appends, so it continues at
   * the new end; output between the copy and the cut is lost.
   */
  trim(): void {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= this.#maxBytes) return;
    attempt(() => writeFileSync(this.#older, readEnd(this.#path, Math.floor(this.#maxBytes / 2))));
    attempt(() => truncateSync(this.#path));
    this.#trims++;
  }

  /** The last lines, oldest first; empty if the log does not exist. */
  tail(lines: number): string[] {
    if (lines <= 0) return [];
    let text = readEnd(this.#path, MAX_TAIL_BYTES).toString("utf8");
    if (countLines(text) <= lines) text = readEnd(this.#older, MAX_TAIL_BYTES).toString("utf8") + text;
    const all = text.split("\n");
    if (all.at(-1) === "") all.pop();
    return all.slice(-lines);
  }

  /** Lines as they are printed, until the signal fires or the sandbox has ended. */
  follow(signal: AbortSignal, over: Promise<unknown>): AsyncIterable<string> {
    // The position is read now, not when the first line is requested.
    const from = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    return this.#follow(from, signal, over);
  }

  async *#follow(from: number, signal: AbortSignal, over: Promise<unknown>): AsyncGenerator<string> {
    const file = await open(this.#path).catch(() => null);
    if (file === null) return;
    const wake = new WakeSignal();
    const notify = () => wake.notify();
    let isOver = false;
    over.then(() => {
      isOver = true;
      notify();
    });
    signal.addEventListener("abort", notify);
    const watcher = watchFile(this.#path, notify);
    const lines = new LineReader(from);
    let trims = this.#trims;
    try {
      while (!signal.aborted) {
        const wasOver = isOver;
        if (trims !== this.#trims || (await file.stat()).size < lines.position) {
          trims = this.#trims;
          lines.position = 0;
        }
        for (let batch = lines.read(file); batch !== null; batch = lines.read(file)) {
          for (const line of batch) {
            yield line;
            if (signal.aborted) return;
          }
        }
        if (wasOver) {
          yield* lines.rest();
          return;
        }
        await wake.wait(watcher === null ? 250 : undefined);
      }
    } finally {
      watcher?.close();
      signal.removeEventListener("abort", notify);
      await file.close();
    }
  }

  get #older(): string {
    return `${this.#path}.1`;
  }
}

/** Ignores errors: on a full disk the copy may fail and the cut must still happen; the file may also be removed meanwhile. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {}
}

/** Splits the growth of a file into lines; a line that is too long is split into pieces. */
class LineReader {
  position: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  #partial = "";

  constructor(position: number) {
    this.position = position;
  }

  /** The lines of the next chunk; null at the end of the file. */
  read(file: FileHandle): string[] | null {
    const count = readSync(file.fd, this.#buffer, 0, CHUNK, this.position);
    if (count === 0) return null;
    this.position += count;
    const lines = (this.#partial + this.#decoder.write(this.#buffer.subarray(0, count))).split("\n");
    this.#partial = lines.pop() as string;
    if (this.#partial.length > MAX_LINE) {
      lines.push(this.#partial);
      this.#partial = "";
    }
    return lines;
  }

  rest(): string[] {
    return this.#partial === "" ? [] : [this.#partial];
  }
}

function watchFile(path: string, onChange: () => void): FSWatcher | null {
  try {
    return watch(path, { persistent: false }, onChange).on("error", () => undefined);
  } catch {
    return null;
  }
}

/** The last bytes of a file, from the beginning of a line; empty if the file does not exist. */
function readEnd(path: string, maxBytes: number): Buffer {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch {
    return Buffer.alloc(0);
  }
  try {
    const { size } = fstatSync(fd);
    const start = Math.max(0, size - maxBytes);
    const bytes = Buffer.alloc(size - start);
    const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, start));
    return start === 0 ? read : read.subarray(read.indexOf(NEWLINE) + 1);
  } finally {
    closeSync(fd);
  }
}

const NEWLINE = 10;

function countLines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) count++;
  return count;
}
