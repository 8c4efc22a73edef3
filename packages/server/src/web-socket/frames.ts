/** What a peer did wrong, with the close code of RFC 6455 that says so. */
export class WebSocketError extends Error {
  override readonly name = "WebSocketError";
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

export const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;

export interface Frame {
  readonly isLast: boolean;
  readonly opcode: number;
  readonly payload: Buffer;
}

const MAX_CONTROL_BYTES = 125;

/** Reads the frames of a client from bytes that arrive in pieces of any size. */
export class FrameReader {
  readonly #maxBytes: number;
  #chunks: Buffer[] = [];
  #length = 0;
  /** Bytes that must be there before reading goes on, so that a long payload is joined once. */
  #needed = 2;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Throws `WebSocketError` for bytes that are not a client's frame. */
  push(bytes: Buffer): Frame[] {
    this.#chunks.push(bytes);
    this.#length += bytes.length;
    const frames: Frame[] = [];
    while (this.#length >= this.#needed) {
      const joined = this.#chunks.length === 1 ? (this.#chunks[0] as Buffer) : Buffer.concat(this.#chunks);
      this.#chunks = [joined];
      const head = readHead(joined, this.#maxBytes);
      this.#needed = head.bytes;
      if (this.#length < head.bytes) continue;
      if (head.isComplete) frames.push(this.#take(joined, head));
    }
    return frames;
  }

  #take(joined: Buffer, head: Head): Frame {
    const payload = Buffer.from(joined.subarray(head.maskAt + 4, head.bytes));
    for (let at = 0; at < payload.length; at++) payload[at] = (payload[at] as number) ^ (joined[head.maskAt + (at & 3)] as number);
    const rest = joined.subarray(head.bytes);
    this.#chunks = rest.length === 0 ? [] : [rest];
    this.#length = rest.length;
    this.#needed = 2;
    return { isLast: head.isLast, opcode: head.opcode, payload };
  }
}

interface Head {
  readonly isLast: boolean;
  readonly opcode: number;
  readonly maskAt: number;
  /** The bytes that are needed next: those of the head, then those of the whole frame. */
  readonly bytes: number;
  readonly isComplete: boolean;
}

function readHead(bytes: Buffer, maxBytes: number): Head {
  const [first, second] = [bytes[0] as number, bytes[1] as number];
  const opcode = first & 15;
  const isLast = first >= 128;
  if ((first & 0x70) !== 0) throw new WebSocketError(1002, "a reserved bit is set, but no extension was agreed on");
  if (second < 128) throw new WebSocketError(1002, "a client's frame must be masked");
  if ((opcode > opcodes.binary && opcode < opcodes.close) || opcode > opcodes.pong)
    throw new WebSocketError(1002, `${opcode} is not the code of a frame`);
  const short = second & 127;
  if (opcode >= opcodes.close && (!isLast || short > MAX_CONTROL_BYTES))
    throw new WebSocketError(1002, "a control frame is too long, or in pieces");
  const maskAt = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < maskAt + 4) return { isLast, opcode, maskAt, bytes: maskAt + 4, isComplete: false };
  const length = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  if (length > maxBytes) throw new WebSocketError(1009, `a message of more than ${maxBytes} bytes is not accepted`);
  return { isLast, opcode, maskAt, bytes: maskAt + 4 + length, isComplete: true };
}

/** A server's frame: in one piece, without a mask. */
export function frameOf(opcode: number, payload: Uint8Array): Buffer {
  const { length } = payload;
  const headBytes = length < 126 ? 2 : length < 65_536 ? 4 : 10;
  const frame = Buffer.allocUnsafe(headBytes + length);
  frame[0] = 128 | opcode;
  frame[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (headBytes === 4) frame.writeUInt16BE(length, 2);
  if (headBytes === 10) frame.writeBigUInt64BE(BigInt(length), 2);
  frame.set(payload, headBytes);
  return frame;
}
