import { PlatformError } from "@aenv/contract";

export interface HeldLimits {
  /** Bytes that the server holds at most for the process in one sandbox. */
  readonly perHost: number;
  /** Bytes that it holds at most for all processes together. */
  readonly total: number;
}

/** What is held for one request. */
export interface Holding {
  /** Counts more bytes. Beyond a limit, the largest request is refused, which may be this one. */
  add(bytes: number): void;
  release(): void;
}

interface Held {
  bytes: number;
  readonly refuse: (error: PlatformError) => void;
}

interface Host {
  readonly id: string;
  bytes: number;
  readonly requests: Set<Held>;
}

/**
 * Counts the bytes that the server holds for requests of environments, which may never end. A process that has more than its share loses its
 * largest request, so that small ones get through. When all processes together have too much, the one that has the most loses its largest
 * request, so that one process cannot have the requests of another one refused.
 */
export class HeldBytes {
  /** What is held, for errors: "parameters", "output of commands". */
  readonly #what: string;
  readonly #limits: HeldLimits;
  readonly #hosts = new Map<string, Host>();
  #bytes = 0;

  constructor(what: string, limits: HeldLimits) {
    this.#what = what;
    this.#limits = limits;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `refuse` is called at most once, and then nothing is counted for the request any more. */
  hold(hostId: string, refuse: (error: PlatformError) => void): Holding {
    const held: Held = { bytes: 0, refuse };
    const host = this.#hosts.get(hostId) ?? { id: hostId, bytes: 0, requests: new Set() };
    this.#hosts.set(hostId, host);
    host.requests.add(held);
    return { add: (bytes) => this.#add(host, held, bytes), release: () => this.#release(host, held) };
  }

  #add(host: Host, held: Held, bytes: number): void {
    if (!host.requests.has(held)) return;
    held.bytes += bytes;
    host.bytes += bytes;
    this.#bytes += bytes;
    const { perHost, total } = this.#limits;
    while (host.bytes > perHost) this.#refuseLargest(host, `the process has ${host.bytes} bytes of ${this.#what}, more than ${perHost}`);
    while (this.#bytes > total)
      this.#refuseLargest(largest(this.#hosts.values()), `the server has ${this.#bytes} bytes of ${this.#what}, more than ${total}`);
  }

  #refuseLargest(host: Host, why: string): void {
    const held = largest(host.requests);
    this.#release(host, held);
    held.refuse(new PlatformError("quota.exceeded", `${why}; send fewer requests at a time`));
  }

  #release(host: Host, held: Held): void {
    if (!host.requests.delete(held)) return;
    host.bytes -= held.bytes;
    this.#bytes -= held.bytes;
    if (host.requests.size === 0) this.#hosts.delete(host.id);
  }
}

function largest<T extends { readonly bytes: number }>(of: Iterable<T>): T {
  let found: T | null = null;
  for (const one of of) if (found === null || one.bytes > found.bytes) found = one;
  if (found === null) throw new RangeError("nothing is held");
  return found;
}
