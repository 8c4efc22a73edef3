import { closeSync, type FSWatcher, fstatSync, openSync, readSync, statSync, truncateSync, watch, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { StringDecoder } from "node:string_decoder";
import { Bell } from "../wake-signal.ts";

const CHUNK = 64 * 1024;
const MAX_LINE = 64 * 1024;
const MAX_TAIL_BYTES = 1024 * 1024;

/**
 * What a sandbox printed. The program itself writes the file, so that it goes on when we do not; we only look after its size.
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
   * Keeps the newer half aside and starts over, if the file has grown too large. The program appends, so it goes on at the
   * new end; what it prints in the very moment of the cut is lost.
   */
  trim(): void {
    const size = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    if (size <= this.#maxBytes) return;
    attempt(() => writeFileSync(this.#older, readEnd(this.#path, Math.floor(this.#maxBytes / 2))));
    attempt(() => truncateSync(this.#path));
    this.#trims++;
  }

  /** The last lines, oldest first; none if the log is gone. */
  tail(lines: number): string[] {
    if (lines <= 0) return [];
    let text = readEnd(this.#path, MAX_TAIL_BYTES).toString("utf8");
    if (countLines(text) <= lines) text = readEnd(this.#older, MAX_TAIL_BYTES).toString("utf8") + text;
    const all = text.split("\n");
    if (all.at(-1) === "") all.pop();
    return all.slice(-lines);
  }

  /** Lines as they are printed, until the signal fires or the sandbox is over. */
  follow(signal: AbortSignal, over: Promise<unknown>): AsyncIterable<string> {
    // The position is taken now, not when the first line is asked for.
    const from = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
    return this.#follow(from, signal, over);
  }

  async *#follow(from: number, signal: AbortSignal, over: Promise<unknown>): AsyncGenerator<string> {
    const file = await open(this.#path).catch(() => null);
    if (file === null) return;
    const bell = new Bell();
    const ring = () => bell.ring();
    let isOver = false;
    over.then(() => {
      isOver = true;
      ring();
    });
    signal.addEventListener("abort", ring);
    const watcher = watchFile(this.#path, ring);
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
        await bell.wait(watcher === null ? 250 : undefined);
      }
    } finally {
      watcher?.close();
      signal.removeEventListener("abort", ring);
      await file.close();
    }
  }

  get #older(): string {
    return `${this.#path}.1`;
  }
}

/** On a full disk, making room comes first; and if the file is gone meanwhile, nothing is to be done. */
function attempt(work: () => void): void {
  try {
    work();
  } catch {}
}

/** Cuts what a file gains into lines; one that never ends is cut into pieces. */
class LineReader {
  position: number;
  readonly #decoder = new StringDecoder("utf8");
  readonly #buffer = Buffer.allocUnsafe(CHUNK);
  #partial = "";

  constructor(position: number) {
    this.position = position;
  }

  /** The lines of the next piece; null at the end of the file. */
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

/** The last bytes of a file, from the beginning of a line; none if there is no such file. */
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
