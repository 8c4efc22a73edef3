/** Output of a command up to a limit. Of a longer one, the beginning and the end are kept: the end says most, and the beginning the cause. */
export class BoundedOutput {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: Part[] = [];
  #headBytes = 0;
  #tail: Part[] = [];
  #tailBytes = 0;
  #dropped = 0;

  constructor(maxBytes: number) {
    this.#headLimit = Math.ceil(maxBytes / 2);
    this.#tailLimit = Math.floor(maxBytes / 2);
  }

  /** Bytes between the beginning and the end that were not kept. */
  get droppedBytes(): number {
    return this.#dropped;
  }

  get keptBytes(): number {
    return this.#headBytes + this.#tailBytes;
  }

  push(data: Uint8Array): void {
    const space = this.#headLimit - this.#headBytes;
    if (space > 0) {
      const part = data.subarray(0, space);
      append(this.#head, part);
      this.#headBytes += part.length;
    }
    const rest = data.subarray(Math.max(0, space));
    if (rest.length === 0) return;
    append(this.#tail, rest);
    this.#tailBytes += rest.length;
    this.#trim();
  }

  bytes(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tail].map(({ buffer, from, to }) => buffer.subarray(from, to)));
  }

  #trim(): void {
    let surplus = this.#tailBytes - this.#tailLimit;
    this.#dropped += Math.max(0, surplus);
    let whole = 0;
    for (; surplus > 0; whole++) {
      const first = this.#tail[whole] as Part;
      const cut = Math.min(first.to - first.from, surplus);
      surplus -= cut;
      this.#tailBytes -= cut;
      first.from += cut;
      if (first.from < first.to) break;
    }
    if (whole > 0) this.#tail = this.#tail.slice(whole);
  }
}

/** A part of a buffer that may have space for more. */
interface Part {
  readonly buffer: Uint8Array;
  from: number;
  to: number;
}

/** A program may write single bytes: a buffer for each would take a hundred times their memory. */
const PART_BYTES = 16 * 1_024;

/** Copies the data, which may be a small part of the buffer that was read from a socket. */
function append(parts: Part[], data: Uint8Array): void {
  const last = parts.at(-1);
  const space = last === undefined ? 0 : Math.min(last.buffer.length - last.to, data.length);
  if (last !== undefined && space > 0) {
    last.buffer.set(data.subarray(0, space), last.to);
    last.to += space;
  }
  if (space === data.length) return;
  const rest = data.subarray(space);
  const buffer = new Uint8Array(Math.max(PART_BYTES, rest.length));
  buffer.set(rest);
  parts.push({ buffer, from: 0, to: rest.length });
}
