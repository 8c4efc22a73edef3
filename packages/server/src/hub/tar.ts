import { PlatformError } from "@aenv/contract";

/** One plain file of an archive. Its body is read before the next file is asked for; what is left unread is skipped. */
export interface TarFile {
  readonly path: string;
  readonly size: number;
  readonly body: AsyncIterable<Uint8Array>;
}

// Where the fields of a ustar header (POSIX.1-1988) lie that matter to us.
const BLOCK = 512;
const field = {
  name: [0, 100],
  mode: [100, 8],
  size: [124, 12],
  checksum: [148, 8],
  type: [156, 1],
  magic: [257, 8],
  prefix: [345, 155],
} as const satisfies Record<string, readonly [offset: number, width: number]>;
const MAGIC = "ustar\x0000";

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads the archives that `aenv build` writes and no others: plain ustar files. Links, devices, folders as entries and
 * every extension of the format (pax, GNU) are refused, for a path or size that arrives by a second way is one more
 * way around the checks.
 */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarFile, void, undefined> {
  const input = new Input(source);
  try {
    for (;;) {
      const block = await input.block();
      if (isZero(block)) break;
      const { path, size } = readHeader(block);
      let left = size;
      const body = async function* () {
        while (left > 0) {
          const chunk = await input.some(left, path);
          left -= chunk.length;
          yield chunk;
        }
      };
      yield { path, size, body: body() };
      while (left > 0) left -= (await input.some(left, path)).length;
      await input.skip(padding(size), path);
    }
    if (!isZero(await input.block())) throw wrong("does not end as an archive ends");
    for (let rest = await input.take(Infinity); rest !== null; rest = await input.take(Infinity)) {
      if (!isZero(rest)) throw wrong("carries something after its end");
    }
  } finally {
    await input.close();
  }
}

function readHeader(block: Uint8Array): { path: string; size: number } {
  if (text(block, "magic", false) !== MAGIC) throw wrong("is not a ustar archive");
  if (octal(block, "checksum") !== checksum(block)) throw wrong("has a damaged header");
  const [prefix, name] = [text(block, "prefix"), text(block, "name")];
  const path = prefix === "" ? name : `${prefix}/${name}`;
  const type = text(block, "type");
  if (type === "1" || type === "2") throw wrong(`holds a link, ${shown(path)}`);
  if (type !== "0" && type !== "") throw wrong(`holds ${shown(path)}, which is not a plain file (type ${shown(type)})`);
  if ((octal(block, "mode") & ~0o777) !== 0) throw wrong(`gives ${shown(path)} an odd mode, ${octal(block, "mode").toString(8)}`);
  demandInside(path);
  return { path, size: octal(block, "size") };
}

/** A path that stays inside the folder it is unpacked into, on every system. */
function demandInside(path: string): void {
  const isInside = path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (isInside && !/[\\\x00-\x1f\x7f]|^[A-Za-z]:/.test(path)) return;
  throw wrong(`may not hold the path ${shown(path)}: it must be relative, without '.', '..', '\\' or control characters`);
}

/** The sum of all bytes, with the checksum's own field taken as spaces. */
function checksum(block: Uint8Array): number {
  const [start, width] = field.checksum;
  return block.reduce((sum, byte, at) => sum + (at >= start && at < start + width ? 0x20 : byte), 0);
}

function text(block: Uint8Array, name: keyof typeof field, endsAtZero = true): string {
  const [start, width] = field[name];
  const bytes = block.subarray(start, start + width);
  const end = endsAtZero ? bytes.indexOf(0) : -1;
  try {
    return utf8.decode(end < 0 ? bytes : bytes.subarray(0, end));
  } catch {
    throw wrong(`has a ${name} that is not UTF-8`);
  }
}

function octal(block: Uint8Array, name: keyof typeof field): number {
  const digits = text(block, name).trim();
  if (!/^[0-7]+$/.test(digits)) throw wrong(`has a damaged ${name}`);
  return Number.parseInt(digits, 8);
}

function padding(size: number): number {
  return (BLOCK - (size % BLOCK)) % BLOCK;
}

function isZero(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte === 0);
}

function shown(value: string): string {
  return JSON.stringify(value);
}

export function wrong(what: string): PlatformError {
  return new PlatformError("bundle.invalid", `the bundle ${what}`);
}

/** Bytes that come in chunks of any size, taken in the sizes that a reader wants. */
class Input {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #left: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  async block(): Promise<Uint8Array> {
    const block = new Uint8Array(BLOCK);
    for (let at = 0; at < BLOCK; ) {
      const part = await this.take(BLOCK - at);
      if (part === null) throw wrong("ends too early");
      block.set(part, at);
      at += part.length;
    }
    return block;
  }

  /** At least one byte and at most `max`. */
  async some(max: number, path: string): Promise<Uint8Array> {
    const part = await this.take(max);
    if (part === null) throw wrong(`ends within ${shown(path)}`);
    return part;
  }

  async skip(count: number, path: string): Promise<void> {
    for (let left = count; left > 0; ) left -= (await this.some(left, path)).length;
  }

  async take(max: number): Promise<Uint8Array | null> {
    while (this.#left.length === 0) {
      const next = await this.#chunks.next();
      if (next.done === true) return null;
      this.#left = next.value;
    }
    const part = this.#left.subarray(0, max);
    this.#left = this.#left.subarray(part.length);
    return part;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
  }
}
