import { PlatformError } from "@aenv/contract";

/**
 * The results of a request that were sent, as the id of a server-sent event: a bit for each position in the request. So a client that
 * sends the last id again gets each of the other results once, from any server.
 */
export class Delivered {
  readonly #bits: Buffer;

  constructor(size: number) {
    this.#bits = Buffer.alloc(Math.ceil(size / 8));
  }

  /** Reads an event's id; null is the beginning. */
  static parse(id: string | undefined, size: number): Delivered {
    const delivered = new Delivered(size);
    if (id === undefined || id === "") return delivered;
    const bits = /^[\w-]*$/.test(id) ? Buffer.from(id, "base64url") : null;
    if (bits === null || bits.length !== delivered.#bits.length) {
      throw new PlatformError(
        "request.invalid",
        `Last-Event-ID is '${id.slice(0, 100)}', which is no id of an event of this request; send the same rollouts in the same order`,
      );
    }
    bits.copy(delivered.#bits);
    return delivered;
  }

  add(at: number): void {
    const byte = at >> 3;
    this.#bits[byte] = (this.#bits[byte] ?? 0) | (1 << (at & 7));
  }

  positions(): Set<number> {
    const all = new Set<number>();
    for (let at = 0; at < this.#bits.length * 8; at++) if (((this.#bits[at >> 3] ?? 0) >> (at & 7)) & 1) all.add(at);
    return all;
  }

  toString(): string {
    return this.#bits.toString("base64url");
  }
}
