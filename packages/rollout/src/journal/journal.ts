import { createReadStream, writeSync } from "node:fs";
import { type FileHandle, open, rename, stat, truncate } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { setImmediate as nextRound } from "node:timers/promises";
import { createGunzip, createGzip, type Gzip } from "node:zlib";
import { PlatformError } from "@aenv/contract";
import { readLine, writeLine } from "./line.ts";
import { splitLines } from "./lines.ts";

const PART_BYTES = 256 * 1024;

/** A record with the byte after its line, so that a reader can go on from there. */
export interface JournalEntry {
  readonly record: Record<string, unknown>;
  readonly end: number;
}

/**
 * An append-only file of records, one line of JSON each. Lines are appended whole, so another process can read the file while it is
 * written. A line that a crash cut off is removed when the journal is opened again.
 */
export class Journal implements AsyncDisposable {
  readonly path: string;
  readonly #file: FileHandle;
  #writing: Promise<void> = Promise.resolve();
  #queue: string[] = [];
  #failure: unknown;
  #closing: Promise<void> | undefined;

  private constructor(path: string, file: FileHandle) {
    this.path = path;
    this.#file = file;
  }

  /** Opens the journal for appending; `onRecord` is called with every record that is in it already. */
  static async open(path: string, onRecord: (record: Record<string, unknown>) => void = () => {}): Promise<Journal> {
    let end = 0;
    for await (const entry of readJournal(path)) {
      onRecord(entry.record);
      end = entry.end;
    }
    const size = await sizeOf(path);
    // Only what a crash cut off can follow the last whole line; `readJournal` refuses damage in the middle.
    if (size > end) await truncate(path, end);
    return new Journal(path, await open(path, "a"));
  }

  /** Appends a record. Resolves when the system has it; records that are appended in one round of the event loop are written together. */
  append(record: Readonly<Record<string, unknown>>): Promise<void> {
    this.#queue.push(writeLine(record));
    if (this.#queue.length === 1) this.#writing = this.#writing.then(() => nextRound()).then(() => this.#write());
    return this.#writing;
  }

  /** Writes what is left, to the disk itself, and closes the file. Idempotent. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    try {
      await this.#writing;
      await this.#file.sync();
    } finally {
      await this.#file.close();
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  /** Written in this thread: to hand a few kilobytes to another one costs more than to give them to the system. */
  #write(): void {
    if (this.#failure !== undefined) throw this.#failure;
    const lines = Buffer.from(this.#queue.join(""));
    this.#queue = [];
    try {
      for (let at = 0; at < lines.length; ) at += writeSync(this.#file.fd, lines, at);
    } catch (cause) {
      this.#failure = new PlatformError("store.unavailable", `the journal ${this.path} cannot be written: ${(cause as Error).message}`, {
        cause,
      });
      throw this.#failure;
    }
  }
}

/** The records of a journal, compressed or not; none if there is no file. An unfinished last line is left out. */
export async function* readJournal(path: string): AsyncGenerator<JournalEntry> {
  const compressed = `${path}.gz`;
  const isCompressed = (await sizeOf(path)) === 0 && (await sizeOf(compressed)) > 0;
  if (!isCompressed && (await sizeOf(path)) === 0) return;
  const file = createReadStream(isCompressed ? compressed : path);
  const bytes = isCompressed ? file.pipe(createGunzip()) : file;
  let number = 0;
  let damage: { line: number; reason: string } | null = null;
  for await (const { text, end } of splitLines(bytes)) {
    number++;
    if (damage !== null) throw damaged(path, damage);
    const read = readLine(text);
    if (read.kind === "record") yield { record: read.record, end };
    else damage = { line: number, reason: read.reason };
  }
}

/** Replaces a finished journal by its compressed form. One that is compressed already stays as it is. */
export async function compressJournal(path: string): Promise<void> {
  if ((await sizeOf(path)) === 0 && (await sizeOf(`${path}.gz`)) > 0) return;
  const part = `${path}.gz.part`;
  const target = await open(part, "w");
  // Half the time of the default, for a tenth more bytes.
  const gzip = createGzip({ level: 3 });
  const writing = pipeline(gzip, target.createWriteStream());
  const feeding = feed(path, gzip).catch((error: Error) => {
    gzip.destroy(error);
    throw error;
  });
  await Promise.all([writing, feeding]);
  await rename(part, `${path}.gz`);
  await truncate(path, 0);
}

/** Through one buffer: a stream has a new one for each part, which take as much memory as the file is long until they are collected. */
async function feed(path: string, gzip: Gzip): Promise<void> {
  await using file = await open(path);
  const buffer = Buffer.allocUnsafeSlow(PART_BYTES);
  for (;;) {
    const { bytesRead } = await file.read(buffer, 0, PART_BYTES, null);
    if (bytesRead === 0) break;
    // It has read the whole part when it calls back.
    await new Promise<void>((resolve, reject) => {
      gzip.write(buffer.subarray(0, bytesRead), (error) => (error ? reject(error) : resolve()));
    });
  }
  gzip.end();
}

async function sizeOf(path: string): Promise<number> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return 0;
    throw error;
  }
}

function damaged(path: string, { line, reason }: { line: number; reason: string }): PlatformError {
  return new PlatformError("store.damaged", `line ${line} of ${path} is damaged: ${reason}; restore the file, or start a new run`);
}
