/** What a reader accepts of a body, stream or message that somebody else sends. */
export interface ReadLimits {
  readonly maxBytes: number;
  /** Time from the call to the last byte; no limit if absent, for readers whose request has a deadline of its own. */
  readonly timeoutMs?: number;
}

export type ReadLimitKind = "bytes" | "line" | "depth" | "values" | "messages" | "time";

/** The sender exceeded a limit of the reader. Callers turn it into the error that blames the right side. */
export class ReadLimitExceeded extends Error {
  override readonly name = "ReadLimitExceeded";
  readonly kind: ReadLimitKind;
  readonly limit: number;

  constructor(kind: ReadLimitKind, limit: number) {
    super(MESSAGES[kind](limit));
    this.kind = kind;
    this.limit = limit;
  }
}

const MESSAGES: Readonly<Record<ReadLimitKind, (limit: number) => string>> = {
  bytes: (limit) => `it is larger than ${limit} bytes`,
  line: (limit) => `it has a line of more than ${limit} characters`,
  depth: (limit) => `its JSON is nested deeper than ${limit} levels`,
  values: (limit) => `its JSON has more than ${limit} values`,
  messages: (limit) => `it has more than ${limit} messages`,
  time: (limit) => `it did not arrive within ${limit} ms`,
};

/** A stream of bytes; null is the empty body of a `Response`. */
export type ByteSource<T extends Uint8Array = Uint8Array> = AsyncIterable<T> | null;

/**
 * The chunks of a source until a limit is exceeded. Then, or when the consumer stops, the source is closed, and with it the connection.
 * Nothing is buffered, so the source is read as fast as the consumer reads.
 */
export async function* boundedChunks<T extends Uint8Array>(source: ByteSource<T>, limits: ReadLimits): AsyncGenerator<T, void, undefined> {
  if (source === null) return;
  const { maxBytes, timeoutMs } = limits;
  const iterator = source[Symbol.asyncIterator]();
  const timer = timeoutMs === undefined ? null : new TimeLimit(timeoutMs);
  let bytes = 0;
  let isOver = false;
  try {
    for (;;) {
      const next = await (timer === null ? iterator.next() : timer.race(iterator.next()));
      if (next.done === true) {
        isOver = true;
        return;
      }
      bytes += next.value.length;
      if (bytes > maxBytes) throw new ReadLimitExceeded("bytes", maxBytes);
      yield next.value;
    }
  } finally {
    timer?.close();
    // A source that waits for its next chunk answers `return` only after that chunk, so it is not waited for.
    if (!isOver) void Promise.resolve(iterator.return?.()).catch(() => {});
  }
}

/** The whole of a body, within its limits. */
export async function readBoundedBytes(source: ByteSource, limits: ReadLimits): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of boundedChunks(source, limits)) {
    chunks.push(chunk);
    size += chunk.length;
  }
  const [only] = chunks;
  if (only !== undefined && chunks.length === 1) return only;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

/** The whole of a body as text, within its limits. */
export async function readBoundedText(source: ByteSource, limits: ReadLimits): Promise<string> {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(await readBoundedBytes(source, limits));
}

/** The lines of a text while it arrives, for streams that may go on for any time. A longer line throws a ReadLimitExceeded. */
export async function* boundedLines(
  source: AsyncIterable<Uint8Array>,
  { maxLineLength }: { readonly maxLineLength: number },
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const pieces: string[] = [];
  let length = 0;
  const add = (piece: string) => {
    length += piece.length;
    if (length > maxLineLength) throw new ReadLimitExceeded("line", maxLineLength);
    pieces.push(piece);
  };
  const take = () => {
    length = 0;
    return pieces.splice(0).join("");
  };
  for await (const chunk of source) {
    const text = decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", from)) {
      add(text.slice(from, at));
      yield take();
      from = at + 1;
    }
    add(text.slice(from));
  }
  add(decoder.decode());
  const last = take();
  if (last !== "") yield last;
}

/** The maximum of `setTimeout`; Node turns a longer delay into 1 ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** A delay that somebody else asks for, as one that this side accepts: a number from 0 to `maxMs` that `setTimeout` can take. */
export function clampDelayMs(ms: number, maxMs: number): number {
  return Number.isNaN(ms) ? 0 : Math.min(Math.max(0, ms), maxMs, LONGEST_TIMER_MS);
}

class TimeLimit {
  readonly #expired = Promise.withResolvers<never>();
  readonly #timer: ReturnType<typeof setTimeout>;

  constructor(timeoutMs: number) {
    this.#expired.promise.catch(() => {});
    const expire = () => this.#expired.reject(new ReadLimitExceeded("time", timeoutMs));
    this.#timer = setTimeout(expire, clampDelayMs(timeoutMs, LONGEST_TIMER_MS));
  }

  race<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#expired.promise]);
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
