/** Output of a command up to a limit. Of a longer one, the beginning and the end are kept: the end says most, and the beginning the cause. */
export class BoundedOutput {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  readonly #head: Uint8Array[] = [];
  #headBytes = 0;
  #tail: Uint8Array[] = [];
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

  push(data: Uint8Array): void {
    const room = this.#headLimit - this.#headBytes;
    if (room > 0) {
      const part = data.subarray(0, room);
      this.#head.push(part);
      this.#headBytes += part.length;
    }
    const rest = data.subarray(Math.max(0, room));
    if (rest.length === 0) return;
    this.#tail.push(rest);
    this.#tailBytes += rest.length;
    this.#trim();
  }

  bytes(): Buffer {
    return Buffer.concat([...this.#head, ...this.#tail]);
  }

  #trim(): void {
    let surplus = this.#tailBytes - this.#tailLimit;
    this.#dropped += Math.max(0, surplus);
    let whole = 0;
    for (; surplus > 0; whole++) {
      const first = this.#tail[whole] as Uint8Array;
      const cut = Math.min(first.length, surplus);
      surplus -= cut;
      this.#tailBytes -= cut;
      if (cut === first.length) continue;
      this.#tail[whole] = first.subarray(cut);
      break;
    }
    if (whole > 0) this.#tail = this.#tail.slice(whole);
  }
}
