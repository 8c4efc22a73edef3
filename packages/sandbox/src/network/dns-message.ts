/** The one question of a query that a name server answers. */
export interface Question {
  readonly id: number;
  readonly name: string;
  readonly type: number;
  readonly isRecursionDesired: boolean;
  /** The question as it was sent: it is repeated in the answer. */
  readonly bytes: Buffer;
}

export const TYPE_A = 1;
const CLASS_INTERNET = 1;
const HEADER = 12;
/** Programs that know no longer messages read at most this much. */
const MAX_ADDRESSES = 24;

export const codes = { ok: 0, failed: 2, noSuchName: 3, notSupported: 4 } as const;
export type ResponseCode = keyof typeof codes;

/** Null for anything but a query with one question for a name of letters, digits, `-` and `_`. */
export function parseQuery(message: Buffer): Question | null {
  if (message.length < HEADER) return null;
  const flags = message.readUInt16BE(2);
  const isQuery = (flags & 0xf800) === 0;
  if (!isQuery || message.readUInt16BE(4) !== 1) return null;
  const labels: string[] = [];
  let at = HEADER;
  for (;;) {
    const length = message[at];
    // Names in questions are not compressed, and a label has at most 63 bytes.
    if (length === undefined || length > 63 || at + 1 + length > message.length || at - HEADER > 255) return null;
    at += 1;
    if (length === 0) break;
    labels.push(message.toString("latin1", at, at + length));
    at += length;
  }
  if (at + 4 > message.length || message.readUInt16BE(at + 2) !== CLASS_INTERNET) return null;
  if (labels.length === 0 || !labels.every((label) => /^[a-z0-9_-]+$/i.test(label))) return null;
  return {
    id: message.readUInt16BE(0),
    name: labels.join(".").toLowerCase(),
    type: message.readUInt16BE(at),
    isRecursionDesired: (flags & 0x0100) !== 0,
    bytes: Buffer.from(message.subarray(HEADER, at + 4)),
  };
}

/** `addresses` as four bytes each, in text. */
export function encodeAnswer(question: Question, code: ResponseCode, addresses: readonly string[] = [], ttlSeconds = 0): Buffer {
  const used = addresses.slice(0, MAX_ADDRESSES);
  const header = Buffer.alloc(HEADER);
  header.writeUInt16BE(question.id, 0);
  // Answer, recursion available.
  header.writeUInt16BE(0x8080 | (question.isRecursionDesired ? 0x0100 : 0) | codes[code], 2);
  header.writeUInt16BE(1, 4);
  header.writeUInt16BE(used.length, 6);
  const records = used.map((address) => {
    const record = Buffer.alloc(16);
    // The name is the one at offset 12: that of the question.
    record.writeUInt16BE(0xc000 | HEADER, 0);
    record.writeUInt16BE(TYPE_A, 2);
    record.writeUInt16BE(CLASS_INTERNET, 4);
    record.writeUInt32BE(ttlSeconds, 6);
    record.writeUInt16BE(4, 10);
    record.set(address.split(".").map(Number), 12);
    return record;
  });
  return Buffer.concat([header, question.bytes, ...records]);
}
