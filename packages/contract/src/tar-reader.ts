import {
  isTarEnd,
  latin1,
  TAR_ATTRIBUTE,
  TAR_BLOCK,
  TAR_TYPES,
  type TarEntry,
  type TarField,
  type TarType,
  tarChecksum,
  tarField,
  tarPadding,
} from "./tar-format.ts";
import { TarInput } from "./tar-input.ts";

/** An entry as it is read. */
export interface TarItem<Chunk extends Uint8Array> {
  /** `other` is a sparse file, or a type that is not known. */
  readonly entry: Omit<TarEntry, "type"> & { readonly type: TarType | "other" };
  /** The records of the extended header before it, each byte as a character. */
  readonly records: Readonly<Record<string, string>>;
  /** Must be read before the next entry; what is left is skipped. */
  readonly content: AsyncIterable<Chunk>;
}

export interface TarReaderOptions {
  /** The error for an archive that has a problem: "the archive cannot be read: it " and what is given. */
  readonly fail?: (problem: string) => Error;
  /** Called with the size of each header with long names or records, before it is read. */
  readonly onExtension?: ((bytes: number) => void) | undefined;
}

/** Long names and extended records are held in memory: all of one entry together. */
const MAX_EXTENSION = 2 ** 20;

const types = new Map<string, TarType>(Object.entries(TAR_TYPES).map(([type, letter]) => [letter, type as TarType]));
types.set("\0", "file").set("7", "file");

/**
 * Reads tar archives as written by GNU tar, Go and others: ustar, pax records, GNU long names and large numbers. It is our own, because names
 * and attributes may be any bytes (modern-tar 0.8 makes them UTF-8), and an entry of an unknown type must not be taken for a file.
 */
export async function* readTarEntries<Chunk extends Uint8Array>(
  source: AsyncIterable<Chunk>,
  { fail = (problem) => new Error(`the archive cannot be read: it ${problem}`), onExtension }: TarReaderOptions = {},
): AsyncGenerator<TarItem<Chunk>> {
  const input = new TarInput(source, fail);
  const header = new HeaderReader(fail);
  let records: Record<string, string> = {};
  let extension = 0;
  try {
    for (;;) {
      const block = await input.take(TAR_BLOCK);
      // Some writers omit the zeros at the end.
      if (block === null || isTarEnd(block)) break;
      header.checkSum(block);
      const size = header.number(block, "size");
      const letter = text(tarField(block, "type")) || "\0";
      if ("xgLK".includes(letter)) {
        extension += size;
        if (extension > MAX_EXTENSION) throw fail(`has ${extension} bytes of headers before an entry; at most ${MAX_EXTENSION} are read`);
        onExtension?.(size);
        const value = (await input.takeAll(size + tarPadding(size))).subarray(0, size);
        if (letter === "x") records = { ...records, ...header.records(value) };
        if (letter === "L") records = { ...records, path: text(value) };
        if (letter === "K") records = { ...records, linkpath: text(value) };
        continue;
      }
      const entry = header.entry(block, letter, size, records);
      const left = { size: entry.size };
      yield { entry, records, content: input.content(left, entry.path) };
      await input.skip(left.size + tarPadding(entry.size), entry.path);
      records = {};
      extension = 0;
    }
    // The digest of a stream covers all of it.
    while ((await input.next(Number.POSITIVE_INFINITY)) !== null);
  } finally {
    await input.close();
  }
}

class HeaderReader {
  readonly #fail: (problem: string) => Error;

  constructor(fail: (problem: string) => Error) {
    this.#fail = fail;
  }

  entry(block: Uint8Array, letter: string, headerSize: number, records: Readonly<Record<string, string>>): TarItem<Uint8Array>["entry"] {
    const isUstar = text(tarField(block, "magic").subarray(0, 6)) === "ustar";
    const prefix = isUstar ? text(tarField(block, "prefix")) : "";
    const name = text(tarField(block, "name"));
    const path = records.path ?? (prefix === "" ? name : `${prefix}/${name}`);
    const isSparse = Object.keys(records).some((key) => key.startsWith("GNU.sparse."));
    const type = isSparse ? "other" : (types.get(letter) ?? "other");
    const isDevice = type === "character" || type === "block";
    const size = this.#decimal(records.size, headerSize);
    return {
      path,
      // Old archives mark a folder by its name only.
      type: type === "file" && path.endsWith("/") ? "directory" : type,
      linkPath: records.linkpath ?? text(tarField(block, "link")),
      mode: this.number(block, "mode") & 0o7777,
      uid: this.#decimal(records.uid, this.number(block, "uid")),
      gid: this.#decimal(records.gid, this.number(block, "gid")),
      size: type === "file" || type === "other" ? size : 0,
      mtimeSeconds: Math.floor(Number(records.mtime ?? this.number(block, "mtime"))) || 0,
      major: isDevice ? this.number(block, "major") : 0,
      minor: isDevice ? this.number(block, "minor") : 0,
      attributes: Object.fromEntries(
        Object.entries(records).flatMap(([key, value]) =>
          key.startsWith(TAR_ATTRIBUTE) ? [[key.slice(TAR_ATTRIBUTE.length), value]] : [],
        ),
      ),
    };
  }

  /** `LENGTH KEY=VALUE\n`, where LENGTH counts the whole record. */
  records(bytes: Uint8Array): Record<string, string> {
    const all = latin1(bytes);
    const records: Record<string, string> = {};
    for (let at = 0; at < all.length; ) {
      const space = all.indexOf(" ", at);
      const length = Number(all.slice(at, space));
      const record = all.slice(space + 1, at + length - 1);
      const equals = record.indexOf("=");
      if (space < 0 || !Number.isSafeInteger(length) || length < 5 || at + length > all.length || equals < 1)
        throw this.#fail("has a malformed extended header");
      records[record.slice(0, equals)] = record.slice(equals + 1);
      at += length;
    }
    return records;
  }

  checkSum(block: Uint8Array): void {
    if (this.number(block, "checksum") !== tarChecksum(block)) throw this.#fail("has a header with a wrong checksum");
  }

  /** Octal digits, or a binary number marked by the highest bit. */
  number(block: Uint8Array, name: TarField): number {
    const bytes = tarField(block, name);
    const first = bytes[0] ?? 0;
    if ((first & 0x80) === 0) {
      const digits = text(bytes).trim();
      if (!/^[0-7]*$/.test(digits)) throw this.#fail(`has a header with '${digits}', which is not an octal number`);
      return digits === "" ? 0 : Number.parseInt(digits, 8);
    }
    const value = bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, first & 0x7f);
    // Negative times exist; no other negative number has a meaning here.
    if (first === 0xff) return 0;
    if (!Number.isSafeInteger(value)) throw this.#fail("has a header with a number that is too large");
    return value;
  }

  #decimal(record: string | undefined, otherwise: number): number {
    if (record === undefined) return otherwise;
    const value = Number(record);
    if (!/^[0-9]+$/.test(record) || !Number.isSafeInteger(value))
      throw this.#fail(`has an extended header with '${record}', which is not a number`);
    return value;
  }
}

function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return latin1(end < 0 ? bytes : bytes.subarray(0, end));
}
