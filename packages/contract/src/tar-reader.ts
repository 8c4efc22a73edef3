import { invalidBundle, isTarEnd, readTarHeader, TAR_BLOCK, tarPadding } from "./tar.ts";

/** One plain file of an archive. Its body is read before the next file is requested; unread bytes are skipped. */
export interface TarFile {
  readonly path: string;
  readonly size: number;
  readonly isExecutable: boolean;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Reads an archive as its bytes arrive. Only archives as `aenv build` writes them are accepted. */
export async function* readTar(source: AsyncIterable<Uint8Array>): AsyncGenerator<TarFile, void, undefined> {
  const input = new Input(source);
  try {
    for (;;) {
      const block = await input.block();
      if (isTarEnd(block)) break;
      const { path, size, isExecutable = false } = readTarHeader(block);
      let left = size;
      const body = async function* () {
        while (left > 0) {
          const chunk = await input.some(left, path);
          left -= chunk.length;
          yield chunk;
        }
      };
      yield { path, size, isExecutable, body: body() };
      while (left > 0) left -= (await input.some(left, path)).length;
      await input.skip(tarPadding(size), path);
    }
    if (!isTarEnd(await input.block())) throw invalidBundle("does not end as an archive ends");
    for (let rest = await input.take(Infinity); rest !== null; rest = await input.take(Infinity)) {
      if (!isTarEnd(rest)) throw invalidBundle("carries something after its end");
    }
  } finally {
    await input.close();
  }
}

/** Chunks of any size, read in the sizes that the parser needs. */
class Input {
  readonly #chunks: AsyncIterator<Uint8Array>;
  #left: Uint8Array = new Uint8Array(0);

  constructor(source: AsyncIterable<Uint8Array>) {
    this.#chunks = source[Symbol.asyncIterator]();
  }

  async block(): Promise<Uint8Array> {
    const block = new Uint8Array(TAR_BLOCK);
    for (let at = 0; at < TAR_BLOCK; ) {
      const part = await this.take(TAR_BLOCK - at);
      if (part === null) throw invalidBundle("ends too early");
      block.set(part, at);
      at += part.length;
    }
    return block;
  }

  /** Reads at least one byte and at most `max`. */
  async some(max: number, path: string): Promise<Uint8Array> {
    const part = await this.take(max);
    if (part === null) throw invalidBundle(`ends within ${JSON.stringify(path)}`);
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
