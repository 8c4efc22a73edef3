/** The bytes of an archive that arrives in chunks of any size. Problems of the archive are thrown as `fail` makes them. */
export class TarInput<Chunk extends Uint8Array> {
  readonly #source: AsyncIterator<Chunk>;
  readonly #fail: (problem: string) => Error;
  #rest: Chunk | null = null;

  constructor(source: AsyncIterable<Chunk>, fail: (problem: string) => Error) {
    this.#source = source[Symbol.asyncIterator]();
    this.#fail = fail;
  }

  /** So many bytes, or null at the end of the archive. */
  async take(length: number): Promise<Uint8Array | null> {
    const first = await this.next(length);
    if (first === null || first.length === length) return first;
    const all = new Uint8Array(length);
    all.set(first);
    for (let at = first.length; at < length; ) {
      const part = await this.next(length - at);
      if (part === null) throw this.#fail("ends too early");
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  async takeAll(length: number): Promise<Uint8Array> {
    if (length === 0) return new Uint8Array(0);
    const taken = await this.take(length);
    if (taken === null) throw this.#fail("ends too early");
    return taken;
  }

  /** The content of an entry. What is left of it counts down, so that it can be skipped. */
  async *content(left: { size: number }, path: string): AsyncGenerator<Chunk> {
    while (left.size > 0) {
      const part = await this.next(left.size);
      if (part === null) throw this.#fail(`ends within ${JSON.stringify(path)}`);
      left.size -= part.length;
      yield part;
    }
  }

  async skip(size: number, path: string): Promise<void> {
    for await (const _ of this.content({ size }, path));
  }

  /** At least one byte and at most `max`; null at the end of the archive. */
  async next(max: number): Promise<Chunk | null> {
    while (this.#rest === null || this.#rest.length === 0) {
      const next = await this.#source.next();
      if (next.done === true) return null;
      this.#rest = next.value;
    }
    const part = this.#rest.subarray(0, max) as Chunk;
    this.#rest = this.#rest.subarray(part.length) as Chunk;
    return part;
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }
}
