/** Calls back when the other side has neither taken nor given a byte for too long. */
export class IdleTimer {
  readonly #limitMs: number;
  readonly #onIdle: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isClosed = false;

  constructor(limitMs: number, onIdle: () => void) {
    this.#limitMs = limitMs;
    this.#onIdle = onIdle;
  }

  /** Something moved; from now on the other side is waited for again. */
  restart(): void {
    clearTimeout(this.#timer);
    if (!this.#isClosed) this.#timer = setTimeout(this.#onIdle, this.#limitMs);
  }

  /** It is our own side that is waited for. */
  stop(): void {
    clearTimeout(this.#timer);
  }

  /** It is over; a body that goes on afterwards starts nothing again. */
  close(): void {
    this.#isClosed = true;
    this.stop();
  }
}

/** The body, with the time that its source takes not counted against the other side. */
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
  return `the other side has stalled: no byte was sent or received for ${limitMs} ms`;
}
