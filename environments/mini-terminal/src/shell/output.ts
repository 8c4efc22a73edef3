/** What is shown of a command's output. */
export interface ShownOutput {
  /** The output as text: bytes that are not UTF-8 are shown as U+FFFD. A long output has a note where its middle was cut out. */
  readonly text: string;
  /** The number of bytes that were cut out. */
  readonly cutBytes: number;
}

/** Keeps the beginning and the end of an output of any length, in memory of a fixed size. */
export class OutputLimiter {
  readonly #headBytes: number;
  readonly #tailBytes: number;
  readonly #head: Buffer[] = [];
  #headLength = 0;
  readonly #tail: Buffer[] = [];
  #tailLength = 0;
  #total = 0;

  constructor(limitBytes: number) {
    this.#headBytes = Math.ceil(limitBytes / 2);
    this.#tailBytes = Math.floor(limitBytes / 2);
  }

  /** The chunk must not be changed afterwards. */
  push(chunk: Buffer): void {
    this.#total += chunk.length;
    const space = this.#headBytes - this.#headLength;
    const first = chunk.subarray(0, space);
    if (first.length > 0) {
      this.#head.push(first);
      this.#headLength += first.length;
    }
    const rest = chunk.subarray(first.length);
    if (rest.length > 0) this.#pushTail(rest);
  }

  #pushTail(chunk: Buffer): void {
    this.#tail.push(chunk);
    this.#tailLength += chunk.length;
    let dropped = 0;
    for (const { length } of this.#tail) {
      if (this.#tailLength - length < this.#tailBytes) break;
      this.#tailLength -= length;
      dropped++;
    }
    if (dropped > 0) this.#tail.splice(0, dropped);
  }

  show(): ShownOutput {
    const tail = Buffer.concat(this.#tail).subarray(-this.#tailBytes || this.#tailLength);
    if (this.#headLength + tail.length === this.#total) {
      return { text: Buffer.concat([...this.#head, tail]).toString("utf8"), cutBytes: 0 };
    }
    const begin = withoutPartAtEnd(Buffer.concat(this.#head));
    const end = withoutPartAtStart(tail);
    const cutBytes = this.#total - begin.length - end.length;
    return { text: `${begin.toString("utf8")}\n[... ${cutBytes} bytes cut out ...]\n${end.toString("utf8")}`, cutBytes };
  }
}

/** Without the first bytes of a UTF-8 character whose last bytes are missing. */
function withoutPartAtEnd(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] as number;
    if (isContinuation(byte)) continue;
    return lengthOfCharacter(byte) > back ? bytes.subarray(0, -back) : bytes;
  }
  return bytes;
}

/** Without the last bytes of a UTF-8 character whose first bytes are missing. */
function withoutPartAtStart(bytes: Buffer): Buffer {
  let start = 0;
  while (start < Math.min(3, bytes.length) && isContinuation(bytes[start] as number)) start++;
  return bytes.subarray(start);
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

function lengthOfCharacter(first: number): number {
  return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
}
