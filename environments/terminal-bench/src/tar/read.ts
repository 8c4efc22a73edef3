import { BLOCK, parseHeader, parsePax, type TarEntry } from "./header.ts";

export interface TarPart extends TarEntry {
  /** Must be read before the next entry is asked for; what is left is skipped. */
  readonly content: AsyncIterable<Uint8Array>;
}

/** The entries of an archive while it arrives. */
export async function* readTar(archive: AsyncIterable<Uint8Array>): AsyncGenerator<TarPart> {
  const source = new Source(archive);
  let pax: ReadonlyMap<string, string> = new Map();
  for (;;) {
    const block = await source.take(BLOCK);
    if (block === null) return;
    const header = parseHeader(block, pax);
    if (header === null) continue;
    if (header.flag === "x") {
      if (header.size > MAX_PAX_BYTES) throw new Error(`a header of the archive has ${header.size} bytes; it may have ${MAX_PAX_BYTES}`);
      pax = parsePax((await source.take(header.size)) ?? Buffer.alloc(0));
      await source.skip(gap(header.size));
      continue;
    }
    pax = new Map();
    const { flag: _, ...entry } = header;
    const left = { size: entry.type === "file" ? entry.size : 0 };
    yield { ...entry, content: source.read(left) };
    await source.skip(left.size + gap(entry.size));
  }
}

/** Names and attributes of one file. */
const MAX_PAX_BYTES = 1_024 ** 2;

const gap = (size: number): number => (BLOCK - (size % BLOCK)) % BLOCK;

/** Bytes of an archive in portions of the wanted size. */
class Source {
  readonly #iterator: AsyncIterator<Uint8Array>;
  #held: Buffer = Buffer.alloc(0);

  constructor(archive: AsyncIterable<Uint8Array>) {
    this.#iterator = archive[Symbol.asyncIterator]();
  }

  /** Null at the end of the archive. */
  async take(size: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for (let missing = size; missing > 0; ) {
      const part = await this.#next(missing);
      if (part === null) {
        if (parts.length === 0) return null;
        throw new Error("the archive is cut off");
      }
      parts.push(part);
      missing -= part.length;
    }
    return parts.length === 1 ? (parts[0] ?? null) : Buffer.concat(parts);
  }

  async skip(size: number): Promise<void> {
    for (let missing = size; missing > 0; ) missing -= (await this.#next(missing))?.length ?? missing;
  }

  async *read(left: { size: number }): AsyncGenerator<Uint8Array> {
    while (left.size > 0) {
      const part = await this.#next(left.size);
      if (part === null) throw new Error("the archive is cut off");
      left.size -= part.length;
      yield part;
    }
  }

  async #next(most: number): Promise<Buffer | null> {
    while (this.#held.length === 0) {
      const { done, value } = await this.#iterator.next();
      if (done === true) return null;
      this.#held = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    }
    const part = this.#held.subarray(0, most);
    this.#held = this.#held.subarray(part.length);
    return part;
  }
}
