/** Calls back when the peer of a connection has sent or received no byte for too long. */
export class IdleTimer {
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(limitMs: number, onIdle: () => void) {
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
  }

  /** Bytes were transferred: the time starts again. */
  restart(): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(this.#onIdle, this.#limitMs);
  }

  /** Pauses: the local side is the one that is waited for. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** Stops for good; a later `restart` does nothing. */
  close(): void {
    this.#isClosed = true;
    this.stop();
  }
}

/** The body; the time that its source takes does not count as idle. */
export async function* timed(body: AsyncIterable<Uint8Array>, idle: IdleTimer): AsyncGenerator<Uint8Array> {
  idle.stop();
  for await (const part of body) {
    idle.restart();
    yield part;
    idle.stop();
  }
  idle.restart();
}

export function idleMessage(limitMs: number): string {
  return `the connection stalled: no byte was sent or received for ${limitMs} ms`;
}
