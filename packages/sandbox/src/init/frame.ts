/** A frame is: u32 length | u8 kind | u32 stream | payload, big endian. The length covers all that follows it. */
export interface Frame {
  readonly kind: number;
  readonly stream: number;
  readonly payload: Buffer;
}

export const frameKind = { request: 0, answer: 1, data: 2, end: 3, window: 4, reset: 5 } as const;

export const maxFrameBytes = 1 << 20;
/** Data that each side may send on a stream before the other has taken some. */
export const initialWindow = 256 << 10;
/** Largest payload of a data frame, so that streams share the connection evenly. */
export const maxDataBytes = 64 << 10;

/** Pieces of a frame that are kept as they were received. */
const MAX_PARTS = 256;
const headerBytes = 9;
const lengthBytes = 4;

export function encodeFrame(kind: number, stream: number, payload: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(headerBytes + payload.length);
  frame.writeUInt32BE(headerBytes - lengthBytes + payload.length, 0);
  frame.writeUInt8(kind, 4);
  frame.writeUInt32BE(stream, 5);
  frame.set(payload, headerBytes);
  return frame;
}

/** Splits received bytes into frames, wherever they were cut on the way. */
export class FrameDecoder {
  #parts: Buffer[] = [];
  #bytes = 0;

  /** Throws on a length that no frame can have; the connection is then useless. */
  *push(received: Buffer): Generator<Frame> {
    this.#parts.push(received);
    this.#bytes += received.length;
    // A frame that arrives in single bytes would take hundreds of times its size.
    if (this.#parts.length > MAX_PARTS) this.#join();
    while (this.#bytes >= headerBytes) {
      const total = lengthBytes + this.#peekLength();
      if (this.#bytes < total) return;
      const all = this.#join();
      this.#parts = all.length > total ? [all.subarray(total)] : [];
      this.#bytes -= total;
      yield { kind: all.readUInt8(4), stream: all.readUInt32BE(5), payload: all.subarray(headerBytes, total) };
    }
  }

  #peekLength(): number {
    const first = this.#parts[0];
    const head = first !== undefined && first.length >= lengthBytes ? first : this.#join();
    const length = head.readUInt32BE(0);
    if (length < headerBytes - lengthBytes || length > maxFrameBytes) {
      throw new Error(`a frame of ${length} bytes is not between ${headerBytes - lengthBytes} and ${maxFrameBytes}`);
    }
    return length;
  }

  #join(): Buffer {
    const [first] = this.#parts;
    if (this.#parts.length === 1 && first !== undefined) return first;
    const all = Buffer.concat(this.#parts);
    this.#parts = [all];
    return all;
  }
}
