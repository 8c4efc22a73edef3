import { isPlatformError, PlatformError } from "@aenv/contract";
import type { Sandbox } from "../engine/engine.ts";

/** The starts and ends of sandboxes that an engine has in progress, and whether it is closed. */
export class EngineWork {
  readonly #starting = new Map<string, Promise<Sandbox>>();
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();

  get isClosed(): boolean {
    return this.#closing.signal.aborted;
  }

  isStarting(id: string): boolean {
    return this.#starting.has(id);
  }

  /** Runs a start, which ends with `request.cancelled` when the signal fires or the engine is closed. */
  async start(id: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Sandbox>): Promise<Sandbox> {
    if (this.isClosed) throw new PlatformError("server.draining", `sandbox '${id}' was not created: the engine is closed`);
    if (signal.aborted) throw cancelled(id);
    try {
      const starting = work(AbortSignal.any([signal, this.#closing.signal]));
      this.#starting.set(id, starting);
      return await starting.finally(() => this.#starting.delete(id));
    } catch (error) {
      const isCancelled = signal.aborted || this.isClosed;
      throw isCancelled && !isPlatformError(error, "request.cancelled") ? cancelled(id) : error;
    }
  }

  end(work: Promise<void>): Promise<void> {
    const ending = work.finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
    return ending;
  }

  /** Cancels the starts, and waits for the ends: a caller may not, and if the server exited in between, sandboxes would be left. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#starting.values());
    await Promise.allSettled(this.#ending);
  }
}

/** `waitedFor`: what the start was waiting for, for a caller that has run out of time. */
export function cancelled(id: string, waitedFor?: string): PlatformError {
  const details = waitedFor === undefined ? {} : { waitedFor };
  return new PlatformError("request.cancelled", `sandbox '${id}' was not created: the request was cancelled`, { details });
}
