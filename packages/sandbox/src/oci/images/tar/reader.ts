import { invalidLayer, type LayerError } from "../unpack/limits.ts";
import { ATTRIBUTE, BLOCK, paddingOf, type TarEntry, type TarType, TYPES } from "./entry.ts";

/** An entry, and its content, which must be read before the next entry. */
export interface TarItem {
  readonly entry: TarEntry;
  readonly content: AsyncIterable<Buffer>;
}

/** Long names and extended records are held in memory: all of one entry together. */
const MAX_EXTENSION = 2 ** 20;

const types = new Map<string, TarType>(Object.entries(TYPES).map(([type, letter]) => [letter, type as TarType]));
types.set("\0", "file").set("7", "file");

/**
 * Reads tar archives as written by GNU tar, Go and others: ustar, pax records, GNU long names and large numbers. Refuses sparse files.
 * `onExtension` is called with the size of each header with long names or records, before it is read.
 */
export async function* readTar(source: AsyncIterable<Buffer>, onExtension?: (bytes: number) => void): AsyncGenerator<TarItem> {
  const bytes = new ByteReader(source);
  let records: Record<string, string> = {};
  let extension = 0;
  for (;;) {
    const header = await bytes.take(BLOCK);
    // Some writers omit the zeros at the end.
    if (header === null || header.every((byte) => byte === 0)) break;
    checkSum(header);
    const size = number(header, 124, 12);
    const letter = text(header, 156, 1) || "\0";
    if ("xgLK".includes(letter)) {
      extension += size;
      if (extension > MAX_EXTENSION)
        throw damaged(`the headers before an entry have ${extension} bytes; at most ${MAX_EXTENSION} are read`);
      onExtension?.(size);
      const value = await bytes.takeAll(size + paddingOf(size));
      if (letter === "x") records = { ...records, ...paxRecords(value.subarray(0, size)) };
      if (letter === "L") records = { ...records, path: text(value, 0, size) };
      if (letter === "K") records = { ...records, linkpath: text(value, 0, size) };
      continue;
    }
    const entry = toEntry(header, letter, size, records);
    records = {};
    extension = 0;
    let isRead = false;
    const content = async function* () {
      yield* bytes.chunks(entry.size);
      await bytes.takeAll(paddingOf(entry.size));
      isRead = true;
    };
    yield { entry, content: content() };
    if (!isRead && entry.size > 0) throw new Error(`the content of '${entry.path}' was not read`);
  }
  await bytes.drain();
}

function toEntry(header: Buffer, letter: string, headerSize: number, records: Readonly<Record<string, string>>): TarEntry {
  const isUstar = text(header, 257, 6) === "ustar";
  const prefix = isUstar ? text(header, 345, 155) : "";
  const name = text(header, 0, 100);
  const path = records.path ?? (prefix === "" ? name : `${prefix}/${name}`);
  const type = types.get(letter);
  if (Object.keys(records).some((key) => key.startsWith("GNU.sparse.")) || letter === "S")
    throw damaged(`'${path}' is a sparse file, which is not supported`);
  if (type === undefined) throw damaged(`'${path}' has the unknown type '${letter}'`);
  const size = decimal(records.size, headerSize);
  return {
    path,
    // Old archives mark a folder by its name only.
    type: type === "file" && path.endsWith("/") ? "directory" : type,
    linkPath: records.linkpath ?? text(header, 157, 100),
    mode: number(header, 100, 8) & 0o7777,
    uid: decimal(records.uid, number(header, 108, 8)),
    gid: decimal(records.gid, number(header, 116, 8)),
    size: type === "file" ? size : 0,
    mtimeSeconds: Math.floor(Number(records.mtime ?? number(header, 136, 12))) || 0,
    major: type === "character" || type === "block" ? number(header, 329, 8) : 0,
    minor: type === "character" || type === "block" ? number(header, 337, 8) : 0,
    attributes: Object.fromEntries(
      Object.entries(records).flatMap(([key, value]) => (key.startsWith(ATTRIBUTE) ? [[key.slice(ATTRIBUTE.length), value]] : [])),
    ),
  };
}

/** `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record. */
function paxRecords(bytes: Buffer): Record<string, string> {
  const records: Record<string, string> = {};
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(" ", at);
    const length = Number(bytes.toString("latin1", at, space));
    const record = bytes.toString("latin1", space + 1, at + length - 1);
    const equals = record.indexOf("=");
    if (space < 0 || !Number.isSafeInteger(length) || length < 5 || at + length > bytes.length || equals < 1)
      throw damaged("an extended header is malformed");
    records[record.slice(0, equals)] = record.slice(equals + 1);
    at += length;
  }
  return records;
}

function checkSum(header: Buffer): void {
  let sum = 8 * 32;
  for (const [index, byte] of header.entries()) if (index < 148 || index >= 156) sum += byte;
  if (number(header, 148, 8) !== sum) throw damaged("the checksum of a header is wrong");
}

function text(bytes: Buffer, from: number, length: number): string {
  const raw = bytes.toString("latin1", from, from + length);
  const end = raw.indexOf("\0");
  return end < 0 ? raw : raw.slice(0, end);
}

/** Octal digits, or a binary number marked by the highest bit. */
function number(header: Buffer, from: number, length: number): number {
  const first = header[from] ?? 0;
  if ((first & 0x80) === 0) {
    const digits = text(header, from, length).trim();
    if (!/^[0-7]*$/.test(digits)) throw damaged(`'${digits}' in a header is not an octal number`);
    return digits === "" ? 0 : Number.parseInt(digits, 8);
  }
  let value = first & 0x7f;
  for (const byte of header.subarray(from + 1, from + length)) value = value * 256 + byte;
  // Negative times exist; no other negative number has a meaning here.
  if (first === 0xff) return 0;
  if (!Number.isSafeInteger(value)) throw damaged("a number in a header is too large");
  return value;
}

function decimal(record: string | undefined, otherwise: number): number {
  if (record === undefined) return otherwise;
  const value = Number(record);
  if (!/^[0-9]+$/.test(record) || !Number.isSafeInteger(value)) throw damaged(`'${record}' in an extended header is not a number`);
  return value;
}

function damaged(problem: string): LayerError {
  return invalidLayer(`the archive cannot be read: ${problem}`);
}

/** Takes exact numbers of bytes from a stream. */
class ByteReader {
  readonly #source: AsyncIterator<Buffer>;
  #rest: Buffer = Buffer.alloc(0);

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  /** Null at the end of the stream. */
  async take(length: number): Promise<Buffer | null> {
    if (this.#rest.length === 0 && !(await this.#more())) return null;
    return this.takeAll(length);
  }

  async takeAll(length: number): Promise<Buffer> {
    const parts: Buffer[] = [];
    for await (const part of this.chunks(length)) parts.push(part);
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  }

  async *chunks(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      if (this.#rest.length === 0 && !(await this.#more())) throw damaged("it ends in the middle of an entry");
      const part = this.#rest.subarray(0, left);
      this.#rest = this.#rest.subarray(part.length);
      left -= part.length;
      yield part;
    }
  }

  /** Reads the rest, so that the digest of the stream covers all of it. */
  async drain(): Promise<void> {
    while (await this.#more());
  }

  async #more(): Promise<boolean> {
    const next = await this.#source.next();
    this.#rest = next.done === true ? Buffer.alloc(0) : next.value;
    if (next.done !== true && next.value.length === 0) return this.#more();
    return next.done !== true;
  }
}
